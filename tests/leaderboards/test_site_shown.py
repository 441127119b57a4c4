"""The site of the published records in Chromium: wide and on a phone, light and dark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser import missing
from shown_pages import PICTURES, find, opened, until, visit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=str(missing())),
]
PAGES = ("index.html", "tasks/least-squares.html", "models/baseconv.html", "findings.html")
LOOKS = [(1400, False), (1400, True), (390, False), (390, True)]

#: Every visible text with less contrast than 4.5 to its ground: its color, its ground, the text.
CONTRAST = """
const canvas = document.createElement('canvas'); canvas.width = canvas.height = 1;
const context = canvas.getContext('2d', {willReadFrequently: true});
const rgb = (c) => { context.clearRect(0, 0, 1, 1); context.fillStyle = c;
  context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data]; };
const light = (c) => { const [r, g, b] = c.map((v) => v / 255)
  .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = (el) => { for (let e = el; e; e = e.parentElement) {
  const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; }
  return [255, 255, 255, 255]; };
const bad = []; let seen = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const el = walker.currentNode.parentElement;
  if (!walker.currentNode.nodeValue.trim() || !el.checkVisibility()) continue;
  if (el.closest('title, script, option:disabled, [disabled]')) continue;
  const style = getComputedStyle(el), color = rgb(el.closest('svg') ? style.fill : style.color);
  const [a, b] = [light(color), light(ground(el))].sort((x, y) => y - x);
  seen += 1;
  if ((a + 0.05) / (b + 0.05) < 4.5) bad.push([String(color), String(ground(el)), el.textContent]);
}
return [seen, bad.slice(0, 5)];
"""


@pytest.fixture(scope="module")
def site(published_site):
    return published_site


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_pages_can_be_read_in_either_theme_and_do_not_overflow(site, width, dark):
    with opened(width, dark) as browser:
        for page in PAGES:
            visit(browser, site / page)
            name = f"{Path(page).stem}-{width}-{'dark' if dark else 'light'}.png"
            browser.save_screenshot(str(PICTURES / name))
            seen, bad = browser.execute_script(CONTRAST)
            assert seen > 20
            assert bad == [], page
            assert browser.execute_script("return document.body.scrollWidth") <= width, page
        visit(browser, site / "tasks" / "least-squares.html")
        # The score is in the window without scrolling the table sideways.
        script = "arguments[0].scrollIntoView(); return arguments[0].getBoundingClientRect().right"
        score = find(browser, "table.board .score")[0]
        assert browser.execute_script(script, score) <= width
        browser.save_screenshot(str(PICTURES / f"table-{name.removeprefix('findings-')}"))


def test_home_tells_the_story_on_one_screen_and_keeps_its_switches(site):
    with opened(1400, False) as browser:
        visit(browser, site / "index.html")
        panels = find(browser, ".panel")
        assert len(panels) >= 7
        bottom = max(panel.rect["y"] + panel.rect["height"] for panel in panels)
        # A visitor reads what the numbers are before the plots, and then scrolls a little.
        assert min(panel.rect["y"] for panel in panels) <= 400
        assert bottom <= 1150
        assert len(find(browser, ".findings li a")) == 3
        table = find(browser, "#matrix table")[0]
        assert table.size["width"] <= 1360
        rows = find(browser, "#matrix tbody tr")
        assert all(re.search(r"\d", row.text) for row in rows)
        trained = [row.text for row in rows]
        browser.find_element("name", "origin").send_keys("constructed")
        until(browser, lambda: "origin=constructed" in browser.current_url)
        constructed = [row.text for row in find(browser, "#matrix tbody tr")]
        assert constructed != trained
        visit(browser, site / "index.html", "#origin=constructed&dtype=float64")
        assert browser.find_element("name", "dtype").get_property("value") == "float64"
        assert "float64" in find(browser, "#matrix .scroll")[0].get_attribute("aria-label")
        browser.save_screenshot(str(PICTURES / "home-constructed.png"))
        ground = "return getComputedStyle(arguments[0]).backgroundColor"
        visit(browser, site / "index.html", "#origin=solver")
        zero = find(browser, "#matrix td[data-v]:not([style])")[0]
        full = find(browser, "#matrix td.at")[0]
        assert browser.execute_script(ground, zero) != browser.execute_script(ground, full)


def test_figures_toggle_lines_print_and_are_explored_by_a_small_script(site):
    with opened(1400, True) as browser:
        visit(browser, site / "tasks" / "least-squares.html")
        button = find(browser, "figure.plot .legend button")[0]
        button.send_keys("\n")
        assert button.get_attribute("aria-pressed") == "false"
        assert not find(browser, "figure.plot .canvas [data-line='0']")[0].is_displayed()
        assert browser.execute_script("return typeof window.uPlot") == "undefined"
        find(browser, ".explore")[0].send_keys("\n")
        until(browser, lambda: find(browser, "figure .uplot canvas"))
        browser.save_screenshot(str(PICTURES / "figure-explored.png"))
        # The vertical axis is named above the chart, and the drawing comes back.
        assert find(browser, "figure.plot.live .y-name")[0].is_displayed()
        find(browser, ".explore")[0].send_keys("\n")
        until(browser, lambda: not find(browser, "figure .uplot canvas"))
        assert not find(browser, "figure.plot .canvas [data-line='0']")[0].is_displayed()
        assert find(browser, "figure.plot .canvas [data-line='1']")[0].is_displayed()
        assert find(browser, ".explore")[0].text == "Explore"
        scripts = sum(file.stat().st_size for file in (site / "assets").glob("*.js"))
        assert scripts < 120_000
        # Paper is light whatever the theme, and shows drawings but no controls.
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert min(map(int, re.findall(r"\d+", ground)[:3])) > 240
        assert not find(browser, "nav")[0].is_displayed()
        assert find(browser, "figure.plot .canvas > svg")[0].is_displayed()


def test_home_fits_a_printed_page_and_legends_strike_no_line_that_prints(site):
    with opened(760, False) as browser:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        visit(browser, site / "index.html")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 760
        sizes = [float(heading.value_of_css_property("font-size").removesuffix("px"))
                 for heading in find(browser, "table.heat thead th")]  # fmt: skip
        assert max(sizes) <= 9
        visit(browser, site / "tasks" / "least-squares.html")
        find(browser, ".legend button")[0].send_keys("\n")
        off = find(browser, ".legend [aria-pressed='false']")
        assert off
        assert {name.value_of_css_property("text-decoration-line") for name in off} == {"none"}


def test_the_bars_of_a_comparison_hold_no_tails_and_the_plot_counts_them(site):
    with opened(1400, False) as browser:
        visit(browser, site / "compare" / "gradient.html")
        until(browser, lambda: find(browser, "#histogram svg"))
        heights = [float(bar.get_attribute("height")) for bar in find(browser, "#histogram .bar")]
        texts = [text.text for text in find(browser, "#histogram text")]
        tails = [
            int(number) for text in texts for number in re.findall(r"(\d+) (?:below|above)", text)
        ]
        (top,) = (int(text) for text in texts if text.isdigit() and text != "0")
        evaluation = find(browser, "[name=evaluation] option")[0].text
        prompts = int(re.search(r"(\d+) prompts", evaluation)[1])
        # At each end, the plot ends at half a percent.
        assert all(abs(count - 0.005 * prompts) <= 1 for count in tails)
        assert sum(heights) * top / 230 + sum(tails) == pytest.approx(prompts, abs=5)


def test_the_search_leads_to_tasks_models_and_runs(site):
    from selenium.webdriver.common.keys import Keys

    with opened(390, True) as browser:
        visit(browser, site / "runs" / next((site / "runs").glob("*.html")).name)
        field = browser.find_element("name", "q")
        field.send_keys("baseconv least")
        until(browser, lambda: find(browser, "#found a"))
        assert all("baseconv" in a.text.lower() for a in find(browser, "#found a"))
        box = find(browser, "#found")[0].rect
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        browser.save_screenshot(str(PICTURES / "search-390.png"))
        field.clear()
        field.send_keys("least squares (")
        until(browser, lambda: "least squares (" in find(browser, "#found a")[0].text.lower())
        field.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
        until(browser, lambda: browser.current_url.endswith("tasks/least-squares.html"))


def test_a_model_s_page_has_its_formula_curves_and_commands(site):
    with opened(1400, False) as browser:
        visit(browser, site / "models" / "baseconv.html")
        assert find(browser, "math")[0].is_displayed()
        text = find(browser, "main")[0].text
        assert "iclbench run --model baseconv" in text
        assert "numbers after S positions" in text
        assert find(browser, "figure.plot svg")
        results = len(find(browser, "details table.results tbody tr"))
        index = json.loads((site / "index.json").read_text("utf-8"))
        known = [row for b in index["boards"] for row in b["rows"] if row["model"] == "baseconv"]
        assert results == len(known)


@pytest.mark.parametrize("name", ["baseconv", "transformer", "linear-transformer"])
def test_every_result_of_a_model_is_in_view_without_an_inner_scroll_bar(site, name):
    with opened(1400, False) as browser:
        visit(browser, site / "models" / f"{name}.html")
        browser.execute_script("document.querySelector('details:has(.results)').open = true")
        box = find(browser, "details .scroll:has(table.results)")[0]
        assert int(box.get_property("scrollWidth")) <= int(box.get_property("clientWidth"))
        assert int(box.get_property("scrollHeight")) <= int(box.get_property("clientHeight"))
        cells = [(row.find_element("css selector", "th").text, row.text)
                 for row in find(browser, "details table.results tbody tr")]  # fmt: skip
        assert len(set(cells)) == len(cells)
