"""The site: its files follow from records alone, and a browser shows them as intended."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import missing, open_browser

from iclbench import RecordStore, UsageError
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.paired import difference
from iclbench.leaderboards.site.build import MARKER, make_site
from iclbench.leaderboards.site.plots import name_of


@pytest.fixture(scope="module")
def folder(leaderboards):
    return leaderboards


@pytest.fixture(scope="module")
def site(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    make_site(out, folder)
    return out


class Links(HTMLParser):
    """The targets of a page's links, styles and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if known.get("rel") == "external":
            self.outside.append(known["href"])
            return
        names = {"href", "src", "data-script", "data-index"}
        self.targets += [v for k, v in attrs if k in names and v]


def test_there_is_a_page_for_every_task_and_record(site, folder):
    records = [r for board in leaderboard(folder / "records") for r in board.records]
    assert {p.stem for p in (site / "runs").glob("*.html")} == {r.id for r in records}
    tasks = {"categorical", "least-squares", "least-squares-prefixes"}
    assert {p.stem for p in (site / "tasks").glob("*.html")} == tasks
    assert {p.stem for p in (site / "compare").glob("*.html")} == tasks


def test_every_link_leads_to_a_file_of_the_site_and_none_to_the_network(site):
    for page in site.rglob("*.html"):
        links = Links()
        links.feed(page.read_text("utf-8"))
        for link in links.targets:
            assert "//" not in link, (page, link)
            if not link.startswith(("#", "data:")):
                assert (page.parent / link.split("#")[0]).is_file(), (page, link)
        assert all(link.startswith("https://") for link in links.outside)


def test_a_run_s_page_shows_how_to_reproduce_it(site, folder):
    store = RecordStore(folder / "records")
    for path in store.paths():
        content = json.loads(path.read_text())
        page = (site / "runs" / f"{content['id']}.html").read_text("utf-8")
        source, platform = content["plugins"][0]["source"], content["environment"]["platform"]
        for text in (content["command"], content["digest"], "iclbench verify", source[:16],
                     platform):  # fmt: skip
            assert text in page
        copy = site / "records" / content["spec"]["task"] / path.name
        assert copy.read_bytes() == path.read_bytes()
        assert ("seed 1" in page) == (content["spec"]["origin"] == "trained")


def test_a_run_s_page_says_what_is_proved_and_what_is_claimed(site, board):
    row = next(row for row in board.rows if row.is_trained)
    page = (site / "runs" / f"{row.record.id}.html").read_text("utf-8")
    for text in ("Nobody has checked this record yet", "device <small>claimed</small>",
                 "trained by this recipe", "not tuned", "at chance", "attainable"):  # fmt: skip
        assert text in page
    assert "stale" not in page


def test_a_task_s_page_shows_kinds_of_floors_chance_and_cited_rows(built, tmp_path):
    make_site(tmp_path, built)
    page = (tmp_path / "tasks" / "least-squares.html").read_text("utf-8")
    for text in ("Attainable in float32", "at the floor", ">chance</td>", "1% worst",
                 "a model of a paper", "≈ 1.5e-13"):  # fmt: skip
        assert text in page
    assert "Cited" not in (tmp_path / "tasks" / "categorical.html").read_text("utf-8")


def test_the_same_records_give_the_same_site(site, folder, tmp_path):
    make_site(tmp_path, folder)
    names = {p.relative_to(site) for p in site.rglob("*") if p.is_file()}
    assert names == {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    assert all((site / n).read_bytes() == (tmp_path / n).read_bytes() for n in names)


def test_pages_of_deleted_records_are_deleted(folder, tmp_path):
    make_site(tmp_path, folder)
    (tmp_path / "runs" / "old.html").touch()
    (tmp_path / "findings.html").touch()  # of findings that there are no more
    (tmp_path / "CNAME").write_text("mine")
    make_site(tmp_path, folder)
    assert not (tmp_path / "runs" / "old.html").exists()
    assert not (tmp_path / "findings.html").exists()
    assert (tmp_path / "CNAME").exists()


def test_a_folder_of_something_else_is_not_overwritten(folder, tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UsageError, match="other than an iclbench site"):
        make_site(tmp_path, folder)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_without_records_nothing_is_written(cli, tmp_path):
    outcome = cli("leaderboard", "site", tmp_path / "out", "--from", tmp_path)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "out" / MARKER).exists()


@pytest.fixture(scope="module")
def browser():
    reason = missing()
    if reason:
        pytest.skip(reason)
    with open_browser() as driver:
        yield driver


def visit(browser, page: Path, fragment: str = "") -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get("about:blank")
    browser.get(page.as_uri() + fragment)
    ready = "return location.pathname.endsWith(arguments[0]) && document.readyState === 'complete'"
    WebDriverWait(browser, 20).until(lambda d: d.execute_script(ready, page.name))


def shown(browser) -> list[str]:
    rows = browser.find_elements("css selector", "table.board tr[data-id]")
    return [
        " ".join(part.text for part in row.find_elements("css selector", "th a, th .args"))
        for row in rows
        if row.is_displayed()
    ]


def names(rows) -> list[str]:
    return [name_of(row, Descriptions(pytest.fail)) for row in rows]


def test_tables_sort_and_filter_by_keyboard(browser, site, board):
    visit(browser, site / "tasks" / "least-squares.html")
    first = shown(browser)
    # The trained rows come first; float64 is filtered out to begin with.
    assert first == names(board.rows)
    best = names(sorted(board.rows, key=lambda row: -row.score))
    digits = browser.find_element("xpath", "//thead//button[.='digits']")
    # The best come first, and a second press turns the order round.
    digits.send_keys("\n")
    assert shown(browser) == best
    assert digits.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    digits.send_keys(" ")
    assert shown(browser) == best[::-1]
    digits.send_keys(" ")
    form = browser.find_element("css selector", "form.filters")
    form.find_element("name", "origin").send_keys("trained")
    assert shown(browser) == [label for label in best if "layers" in label]
    form.find_element("name", "find").send_keys("layers=2")
    assert len(shown(browser)) == 1
    assert form.find_element("css selector", "output").text == "1 of 7 rows"
    form.find_element("name", "find").clear()
    # A model is found by the name that commands know it by, too.
    form.find_element("name", "origin").send_keys("all")
    form.find_element("name", "find").send_keys("least-squares-qr")
    assert shown(browser) == ["QR"]
    form.find_element("name", "find").clear()
    form.find_element("name", "origin").send_keys("all")
    form.find_element("name", "dtype").send_keys("float64")
    assert shown(browser) == ["QR", "Zero"]


def test_long_tables_show_the_rest_when_asked(browser, folder, board, tmp_path, monkeypatch):
    monkeypatch.setattr("iclbench.leaderboards.site.task.MOST_ROWS", 2)
    make_site(tmp_path, folder)
    visit(browser, tmp_path / "tasks" / "least-squares.html")
    assert shown(browser) == names(board.rows[:2])
    browser.find_element("xpath", "//thead//button[.='digits']").send_keys("\n")
    best = names(sorted(board.rows, key=lambda row: -row.score))
    assert shown(browser) == best[:2]
    more = browser.find_element("css selector", ".more")
    assert more.text == "Show all 5"
    more.send_keys("\n")
    assert shown(browser) == best
    assert not more.is_displayed()


@pytest.mark.parametrize("pair", [(0, 1), (0, 3), (2, 3), (2, 4)])
def test_any_two_records_are_compared_as_in_python(browser, site, board, pair):
    """Pairs of trained rows, of solvers, and of both."""
    a, b = (board.rows[i] for i in pair)
    page = site / "compare" / "least-squares.html"
    visit(browser, page, f"#a={a.record.id}&b={b.record.id}")
    expected = difference(a.ranked, b.ranked, in_digits=True)
    verdict = wait(browser, "#verdict", "Digits gained")
    numbers = [float(v.replace("−", "-")) for v in re.findall(r"[+−]\d+\.\d\d", verdict)]
    assert numbers == pytest.approx(list(expected[:3]), abs=0.006)
    better = "first" if expected.mean > 0 else "second"
    assert verdict.startswith(
        f"The {better} is better." if expected.is_significant else "No significant difference."
    )
    if expected.is_significant:
        browser.find_element("id", "swap").click()
        other = {"first": "second", "second": "first"}[better]
        assert wait(browser, "#verdict", f"The {other} is better")


def wait(browser, selector: str, text: str) -> str:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(
        lambda d: text in (shown := d.find_element("css selector", selector).text) and shown
    )


def test_a_figure_is_shown_at_once_and_becomes_interactive_in_place(browser, site):
    visit(browser, site / "tasks" / "least-squares-prefixes.html")
    assert browser.find_element("css selector", ".canvas > svg").is_displayed()
    assert browser.execute_script("return typeof window.uPlot") == "undefined"
    box = (
        "const b = document.querySelector('.canvas').getBoundingClientRect();"
        " return [b.x, b.y + scrollY, b.width, b.height]"
    )
    before = browser.execute_script(box)
    browser.find_element("css selector", ".explore").send_keys("\n")
    wait(browser, ".explore", "Back")
    assert browser.find_element("css selector", ".canvas .uplot canvas").is_displayed()
    assert browser.execute_script(box) == before


def test_no_page_shifts_overflows_logs_errors_or_uses_the_network(site):
    reason = missing()
    if reason:
        pytest.skip(reason)
    run_page = next((site / "runs").glob("*.html"))
    pages = [site / "index.html", site / "tasks" / "least-squares.html",
             site / "compare" / "least-squares.html", run_page]  # fmt: skip
    shift = """
        const done = arguments[0]; let total = 0;
        new PerformanceObserver(l => l.getEntries().forEach(e => total += e.value))
            .observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(total), 300);"""
    for width, dark in ((1280, False), (390, True)):
        with open_browser(width, 800, dark) as browser:
            for page in pages:
                browser.get(page.as_uri())
                assert browser.execute_async_script(shift) < 0.01, page
                wide = browser.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, page
                background = browser.execute_script(
                    "return getComputedStyle(document.body).backgroundColor"
                )
                assert (max(map(int, re.findall(r"\d+", background)[:3])) < 100) == dark
            assert browser.get_log("browser") == []
            messages = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
            urls = [m["params"]["request"]["url"] for m in messages
                    if m["method"] == "Network.requestWillBeSent"]  # fmt: skip
            assert urls
            assert all(url.startswith(("file:", "data:", "about:")) for url in urls)


def test_the_theme_can_be_chosen(browser, site):
    visit(browser, site / "index.html")
    theme = browser.find_element("id", "theme")
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ground)
    theme.send_keys("\n")
    theme.send_keys("\n")
    assert theme.text == "Theme: dark"
    assert browser.execute_script(ground) != light
    visit(browser, site / "index.html")
    assert browser.execute_script(ground) != light  # it is remembered
    browser.find_element("id", "theme").send_keys("\n")
