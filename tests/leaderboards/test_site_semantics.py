"""What assistive software reads: links in drawings, names of marks and dialogs, borders."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from iclbench.leaderboards.site.build import make_site

#: The least contrast of the border of a control to its ground (WCAG 1.4.11).
LEAST = 3.0


@pytest.fixture(scope="module")
def pages(leaderboards, tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "out"
    make_site(out, leaderboards)
    return {path.relative_to(out).as_posix(): path.read_text("utf-8")
            for path in out.rglob("*.html")}  # fmt: skip


def test_links_are_in_groups_not_in_images_whose_content_is_not_read(pages):
    drawings = [svg for text in pages.values() for svg in re.findall("<svg.*?</svg>", text, re.S)]
    with_links = [svg for svg in drawings if "<a " in svg]
    assert with_links
    assert all('role="group" aria-label="' in svg.partition(">")[0] for svg in with_links)


def test_the_origin_of_a_row_is_text(pages):
    page = pages["tasks/least-squares.html"]
    assert '<span class="sr">trained</span>' in page
    assert not any(re.search("<span[^>]*aria-label", text) for text in pages.values())


def test_a_dialog_is_named_by_its_title(pages):
    for text in pages.values():
        for dialog in re.findall("<dialog.*?</dialog>", text, re.S):
            (name,) = re.findall('<dialog[^>]*aria-labelledby="([^"]+)"', dialog)
            assert f'<h2 id="{name}">' in dialog
    assert "<dialog" in pages["tasks/least-squares.html"]


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_borders_of_controls_can_be_seen_in_either_theme():
    style = (resources.files("iclbench.leaderboards.site") / "assets/site.css").read_text("utf-8")
    assert re.search(
        r"^button, select, input \{[^}]*border: 1px solid var\(--control\)", style, re.M
    )
    values = {name: re.findall(f"--{name}: (#[0-9a-f]{{6}});", style)
              for name in ("control", "bg", "panel")}  # fmt: skip
    assert {name: len(colors) for name, colors in values.items()} == dict.fromkeys(values, 3)
    for control, *grounds in zip(*values.values(), strict=True):
        for ground in grounds:
            low, high = sorted((luminance(control), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= LEAST, (control, ground)


def test_no_number_on_a_page_begins_with_a_hyphen(pages):
    for name, text in pages.items():
        shown = re.sub(r"<(style|code|pre)\b.*?</\1>", "", text, flags=re.S)
        assert not re.findall(r">\s*-\d[^<]*|… -\d[^<]*", shown), name


def test_a_task_page_begins_with_its_text_formula_and_boards(pages):
    page = pages["tasks/least-squares.html"]
    parts = ["<h1>", "A prompt shows N examples", "<math", '<details class="rules">',
             "Trained rows of one track", '<section class="evaluation"',
             'class="table-legend"', '<table class="board">']  # fmt: skip
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.count('class="table-legend"') == 1
    for target in re.findall('href="#(h-[^"]+)"', page):
        assert f'id="{target}"' in page


def test_the_seeds_and_chance_of_a_row_are_beside_its_name_and_score(pages):
    page = pages["tasks/least-squares.html"]
    (head,) = re.findall('<table class="board">.*?</thead>', page, re.S)[:1]
    (seeds,) = re.findall(r"<th[^>]*>(?:<button[^>]*>)?seeds", head)
    assert "wide" not in seeds
    assert '<small class="track">perhaps at chance</small>' in page


def test_home_explains_lines_above_the_plots_and_says_what_they_show(pages):
    page = pages["index.html"]
    places = [page.index(part) for part in ('class="lines"', 'class="keys"', 'class="panels"')]
    assert places == sorted(places)
    assert re.search('<p class="sentence">[^<]+\\.</p>', page)
