"""A task's table in Chromium: its address, comparisons and exports, and its names on a phone."""

from __future__ import annotations

import csv
import itertools
import re

import pytest
from browser import missing
from shown_pages import PICTURES, ROOT, find, opened, shown, until, visit

from iclbench.leaderboards import formats
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.paired import difference
from iclbench.leaderboards.site.minus import with_minus

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=str(missing())),
]


@pytest.fixture(scope="module")
def site(published_site):
    return published_site


def test_a_task_s_table_is_in_its_address_and_compares_what_is_shown(site):
    records = ROOT / "leaderboards" / "records"
    rows = {row.record.id: row for board in leaderboard(records) for row in board.rows}
    page = site / "tasks" / "least-squares.html"
    with opened(1400, True) as browser:
        visit(browser, page)
        heads = [h.text.split("\n")[0] for h in find(browser, "section:first-of-type thead th")]
        assert len([h for h in heads if h]) == 7
        visit(browser, page, "#origin=solver&sort=-digits&columns=all")
        ids = shown(browser)
        scores = [rows[i].score for i in ids]
        assert scores == sorted(scores, reverse=True)
        assert {rows[i].origin for i in ids} == {"solver"}
        cells = f"tr[data-id='{ids[-1]}'] .above"
        until(browser, lambda: find(browser, cells)[0].text)
        told = [find(browser, f"tr[data-id='{i}'] .above")[0].text for i in ids[1:]]
        pairs = [(rows[i].ranked, rows[j].ranked) for j, i in itertools.pairwise(ids)]
        differences = [difference(*pair, in_digits=True) for pair in pairs]
        assert told == [with_minus(formats.difference(paired, "log")) for paired in differences]
        assert {text[-1] for text in told} >= {"*", "0"}
        browser.save_screenshot(str(PICTURES / "task-all-columns.png"))
        find(browser, "button.columns")[0].send_keys("\n")
        find(browser, "form.filters [name=find]")[0].send_keys("gradient")
        assert "find=gradient" in browser.current_url
        assert "columns" not in browser.current_url
        fewer = shown(browser)
        browser.refresh()
        until(browser, lambda: shown(browser) == fewer)


def test_the_shown_rows_are_exported(site):
    with opened(1400, False) as browser:
        visit(browser, site / "tasks" / "least-squares.html", "#origin=solver")
        texts, names = {}, {}
        for kind in ("csv", "latex", "bibtex"):
            # Chromium's driver clicks before it has scrolled this far down.
            find(browser, f"[data-export='{kind}']")[0].send_keys("\n")
            area = find(browser, "dialog textarea")[0]
            texts[kind] = area.get_property("value")
            link = find(browser, "dialog .download")[0]
            assert link.get_attribute("href").startswith("blob:")
            names[kind] = link.get_attribute("download")
            if kind == "latex":
                browser.save_screenshot(str(PICTURES / "task-latex.png"))
            browser.execute_script("document.getElementById('export').close()")
        ids = shown(browser)
        lines = texts["csv"].splitlines()
        score = "digits,low,high,interval mark,vs. floor"
        head = f"rank,model,{score},seeds,parameters,compute,origin,track,dtype,id"
        # A board without budgets has no tracks.
        assert lines[0] in {head, head.replace(",track", "")}
        table = list(csv.DictReader(lines))
        assert [line["id"] for line in table] == ids
        for line in table:
            assert float(line["low"]) <= float(line["digits"]) <= float(line["high"])
            assert int(line["parameters"]) >= 0
            assert (line["origin"], line["dtype"]) == ("solver", "float32")
        assert texts["latex"].count(r"\\") == len(ids) + 1
        assert r"\toprule" in texts["latex"]
        assert "_" not in texts["latex"].replace(r"\_", "")
        caption = re.search(r"\\caption\{(.*)\}", texts["latex"])[1]
        assert caption.startswith("Least squares, D~=~5, N~=~20. Dtype float32. Mean digits")
        assert re.search(r"95\\% intervals on [\d,]+ evaluation prompts\.$", caption)
        assert re.fullmatch(r"least-squares-d-5-n-20-\d+-prompts-float32\.csv", names["csv"])
        assert names["latex"] == names["csv"].replace(".csv", ".tex")
        assert names["bibtex"] == "least-squares.bib"
        assert "@software{iclbench," in texts["bibtex"]
        assert "https://arxiv.org/abs/2503.12295" in texts["bibtex"]


def test_a_phone_shows_names_whole_and_where_a_table_goes_on(site):
    cut = "return [...document.querySelectorAll('tbody th')].filter(h => h.checkVisibility()" \
        " && h.scrollWidth > h.clientWidth + 1).map(h => h.textContent)"  # fmt: skip
    with opened(390, False) as browser:
        run = next((site / "runs").glob("*.html")).name
        for page in ("tasks/least-squares.html", "models/transformer.html", f"runs/{run}"):
            visit(browser, site / page)
            assert browser.execute_script(cut) == [], page
            for box in find(browser, ".scroll, .formula"):
                assert "gradient" in box.value_of_css_property("background-image")


def test_all_columns_are_exported_as_numbers(site):
    with opened(1400, False) as browser:
        visit(browser, site / "tasks" / "least-squares.html", "#origin=trained&columns=all")
        texts = {}
        for kind in ("csv", "latex"):
            find(browser, f"[data-export='{kind}']")[0].send_keys("\n")
            # The differences between the shown rows are taken first.
            until(browser, lambda: find(browser, "dialog[open] textarea"))
            texts[kind] = find(browser, "dialog textarea")[0].get_property("value")
            browser.execute_script("document.getElementById('export').close()")
        table = list(csv.DictReader(texts["csv"].splitlines()))
        above = [[line[f"vs. row above{end}"] for end in (", low", "", ", high")] for line in table]
        assert above[0] == ["", "", ""]
        marks = {line["vs. row above, mark"] for line in table}
        assert marks & {"*", "†"}
        assert marks <= {"", "*", "†", "~"}
        assert all(float(low) <= float(mean) <= float(high) for low, mean, high in above if mean)
        assert sum(mean != "" for _, mean, _ in above) > len(above) / 2
        assert re.search(r"& \$\d\.\d\d\\times10\^\{-\d+\}\$ &", texts["latex"])
        assert not re.search(r"\de[-−]\d", texts["latex"])
