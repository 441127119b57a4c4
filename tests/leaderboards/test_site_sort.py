"""The table of the home page is sorted by any of its columns, and stays so for a keyboard."""

from __future__ import annotations

import pytest
from browser import missing
from shown_pages import find, opened, until, visit

from iclbench.leaderboards.site.build import make_site

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))


@pytest.fixture(scope="module")
def page(leaderboards, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    make_site(out, leaderboards)
    return out / "index.html"


def values(browser, column: int) -> list[str]:
    rows = find(browser, "#matrix tbody tr:not(.scale)")
    return [row.find_elements("css selector", "th, td")[column].text for row in rows]


def test_numbers_with_a_positive_exponent_are_sorted_as_numbers(page):
    with opened(1400, False) as browser:
        visit(browser, page)
        order = browser.execute_script("""
            const box = document.createElement("div");
            box.innerHTML = `<table class="results"><thead><tr><th>n</th></tr></thead><tbody>
              ${["3.5", "1.2e+04", "1e-3", "1e+05"].map((t) => `<tr><td>${t}</td></tr>`).join("")}
              </tbody></table>`;
            document.body.append(box);
            window.makeSortable(box);
            box.querySelector("button").click();
            return [...box.querySelectorAll("td")].map((cell) => cell.textContent);
        """)
        assert order == ["1e+05", "1.2e+04", "3.5", "1e-3"]


def test_a_link_within_the_page_keeps_the_chosen_table(page):
    with opened(1400, False) as browser:
        visit(browser, page, "#origin=solver")
        origin = "return document.getElementById('switches').origin.value"
        assert browser.execute_script(origin) == "solver"
        browser.execute_script("location.hash = 'main'")
        until(browser, lambda: browser.execute_script("return location.hash") == "#main")
        assert browser.execute_script(origin) == "solver"
        # Another origin has a dtype and a track of its own.
        options = (
            "return [...document.getElementById('switches').origin.options].map((o) => o.disabled)"
        )
        assert not any(browser.execute_script(options))


def test_columns_of_the_home_page_are_sorted(page):
    with opened(1400, False) as browser:
        visit(browser, page, "#origin=solver")
        until(browser, lambda: len(find(browser, "#matrix thead button")) > 2)
        buttons = find(browser, "#matrix thead button")
        names = [button.get_attribute("aria-label") for button in buttons]
        assert names[0] == "Sort by model"
        column = names.index("Sort by Least squares")
        buttons[column].send_keys("\n")
        shown = values(browser, column)
        known = [float(text.replace("−", "-").split()[0]) for text in shown if text[-1:].isdigit()]
        # The best come first, and cells without a result last.
        assert known == sorted(known, reverse=True)
        assert len(known) > 1
        assert set(shown[len(known) :]) <= {"·", "–"}
        heading = find(browser, "#matrix thead [aria-sort]")
        assert [h.get_attribute("aria-sort") for h in heading] == ["descending"]
        buttons[column].send_keys(" ")
        assert values(browser, column)[: len(known)] == shown[: len(known)][::-1]
        buttons[0].send_keys("\n")
        models = values(browser, 0)
        assert models == sorted(models, key=str.lower)
        last = find(browser, "#matrix tbody tr")[-1]
        assert last.get_attribute("class") == "scale"


def test_rows_without_a_number_come_last_in_a_board_s_table(page):
    """A solver has no compute: it is not the cheapest."""
    with opened(1400, False) as browser:
        visit(browser, page.parent / "tasks" / "least-squares.html")
        compute = """
            const section = document.querySelector("section.evaluation");
            const by = [...section.querySelectorAll("[data-sort]")]
              .find((button) => button.textContent === "compute");
            by.click();
            const column = [...by.closest("tr").children].indexOf(by.closest("th"));
            return [...section.querySelectorAll("tr[data-id]")]
              .map((row) => row.cells[column].dataset.v);
        """
        for _ in range(2):
            values = browser.execute_script(compute)
            known = [value for value in values if value]
            assert known
            assert "" in values
            assert values[: len(known)] == known
