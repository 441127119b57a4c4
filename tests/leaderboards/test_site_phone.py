"""A figure in Chromium, on a desktop and on a phone: nothing of it lies beyond its frame."""

from __future__ import annotations

from importlib import resources

import pytest
from browser import missing, open_browser
from jinja2 import Environment, PackageLoader

from iclbench.leaderboards.site.figure import figure
from iclbench.leaderboards.site.plots import COLORS, LONGEST_Y, plot

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=str(missing()))]

LINES = [{"name": f"model {i}", "x": [1, 10], "y": [0.0, float(i)]} for i in range(COLORS + 4)]
#: Whether every text and curve that is shown of the drawings lies in the canvas.
INSIDE = """
    const frame = document.querySelector(".canvas").getBoundingClientRect();
    return [...document.querySelectorAll(".canvas :is(text, path.line)")]
        .map((part) => part.getBoundingClientRect()).filter((box) => box.width > 0)
        .every((box) => box.left >= frame.left - 2 && box.right <= frame.right + 2
            && box.top >= frame.top - 2 && box.bottom <= frame.bottom + 2);"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page for each name of the vertical axis, by whether that is long."""
    templates = Environment(loader=PackageLoader("iclbench.leaderboards.site"), autoescape=True,
                            trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    show = templates.get_template("figure.html").module.show
    style = (resources.files("iclbench.leaderboards.site") / "assets" / "site.css").read_text()
    paths = {}
    for is_long in (False, True):
        name = "y" * (LONGEST_Y + 1 if is_long else LONGEST_Y)
        drawn = show(figure(plot("t", "x", name, LINES, log=False)))
        path = tmp_path_factory.mktemp("page") / "page.html"
        head = "<meta charset=utf-8><meta name=viewport content='width=device-width'>"
        path.write_text(f"{head}<style>{style}</style><main>{drawn}</main>", "utf-8")
        paths[is_long] = path
    return paths


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_a_plot_fits_its_frame_and_has_names_or_a_legend(page, width, is_long):
    is_phone = width < 600
    with open_browser(width, 900) as browser:
        browser.get(page[is_long].as_uri())
        assert browser.execute_script(INSIDE)
        shown = [d for d in browser.find_elements("css selector", ".canvas > svg")
                 if d.is_displayed()]  # fmt: skip
        assert [("narrow" in (d.get_attribute("class") or "")) for d in shown] == [is_phone]
        assert browser.find_element("css selector", ".legend").is_displayed() == is_phone
        above = browser.find_element("css selector", ".y-name").is_displayed()
        assert above == (is_phone or is_long)
        beside = [t for t in browser.find_elements("css selector", ".canvas text.y")
                  if t.is_displayed()]  # fmt: skip
        assert bool(beside) != above
