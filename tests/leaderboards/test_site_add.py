"""The page on how to add a model, and what else the head of every page leads to."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
from browser import missing, open_browser

from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site import search
from iclbench.leaderboards.site.add import add_view
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.links import Links
from iclbench.leaderboards.site.more_pages import MorePages


@pytest.fixture(scope="module")
def site(leaderboards, tmp_path_factory):
    out = tmp_path_factory.mktemp("adding") / "out"
    make_site(out, leaderboards)
    return out


def read(site, name):
    return (site / name).read_text("utf-8")


def test_every_page_leads_to_the_page_on_adding_a_model(site):
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert len(re.findall(r'href="(?:\.\./)*add\.html"', text)) >= 2, page
    text = read(site, "add.html")
    for command in ("iclbench new architecture NAME", "iclbench check iclbench-NAME",
                    "iclbench submit results"):  # fmt: skip
        assert f"<code>{command}</code>" in text


def test_addresses_outside_are_there_only_if_the_site_was_built_with_them(
    site, leaderboards, tmp_path
):
    assert "documentation</a>" not in read(site, "add.html")
    make_site(tmp_path, leaderboards, links=Links("../docs/index.html", "https://example.org/x"))
    text = read(tmp_path, "add.html")
    assert '<a href="../docs/index.html">documentation</a>' in text
    assert '<a href="https://example.org/x">source code</a>' in text


def test_the_command_names_the_suite_and_the_track_of_most_rows():
    rows = [SimpleNamespace(track=t, is_trained=True) for t in ("1m", "1m", "10m", "", "", "")]
    command = "iclbench run --model lsa --task recall --task-args vocabulary=64 --steps 9"
    record = SimpleNamespace(command=command, spec=SimpleNamespace(task="recall"))
    board = SimpleNamespace(task="recall", rows=rows, first=record)
    suites = [{"name": name, "tables": [{"rows": [0] * n}]} for name, n in (("a", 1), ("b", 2))]
    assert add_view(suites, [board])["run"] == "iclbench run --model NAME --suite b --budget 1m"
    board.rows = rows[-1:]
    # Other arguments of the task would be another board.
    alone = "iclbench run --model NAME --task recall --task-args vocabulary=64 --seeds 3"
    assert add_view([], [board])["run"] == alone
    # Nobody may have verified the record.
    for text in ("iclbench run --model lsa --task", "iclbench 'run", ""):
        record.command = text
        assert add_view([], [board])["run"] == "iclbench run --model NAME --task recall --seeds 3"


def test_tasks_that_only_studies_have_are_in_the_menu_and_the_search(leaderboards):
    boards = leaderboard(leaderboards / "records")
    about = Descriptions(pytest.fail)
    study = SimpleNamespace(name="s", rows=[(None, SimpleNamespace(task=t))
                                            for t in ("ridge", "least-squares")])  # fmt: skip
    more = SimpleNamespace(shown=[study], boards=boards, about=about)
    studied = MorePages.studied.fget(more)
    assert [(task.name, page) for task, page in studied] == [("ridge", "studies/s.html")]
    text = search.script(search.index(boards, about), studied=studied)
    entries = json.loads(text.removeprefix("indexed(").removesuffix(");\n"))
    (found,) = (text for kind, text, page in entries if (kind, page) == ("task", "studies/s.html"))
    assert found.startswith("Ridge (ridge), ")
    assert ["page", "Add your model: submit results", "add.html"] in entries


def test_a_title_is_told_on_a_line_when_its_element_has_the_focus(site):
    if reason := missing():
        pytest.skip(reason)
    with open_browser() as browser:
        browser.get((site / "index.html").as_uri())
        cell = browser.find_element("css selector", "#matrix td a[title]")
        title = cell.get_attribute("title")
        browser.execute_script("arguments[0].focus()", cell)
        (line,) = browser.find_elements("css selector", ".told")
        assert line.text == title


def test_the_tables_of_a_model_are_sorted_by_their_headings(site):
    if reason := missing():
        pytest.skip(reason)
    with open_browser() as browser:
        browser.get((site / "models/baseconv.html").as_uri())
        browser.execute_script("document.querySelector('details:has(.results)').open = true")
        scores = "return [...document.querySelectorAll('details .results tbody tr')]" \
            ".map((row) => Number(row.cells[1].dataset.v))"  # fmt: skip
        button = "document.querySelectorAll('details .results th button')[1].click()"
        browser.execute_script(button)
        assert (down := browser.execute_script(scores)) == sorted(down, reverse=True)
        browser.execute_script(button)
        assert browser.execute_script(scores) == down[::-1]
        assert len(set(down)) > 1
