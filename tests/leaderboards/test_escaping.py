"""Texts of records can't leave their cell, in Markdown, CSV and figures."""

from __future__ import annotations

import csv
import html
import io

import pandas as pd
import pytest

from iclbench.leaderboards.escaping import csv_cell, markdown, markdown_table, plotly
from iclbench.leaderboards.export import as_csv


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("baseconv layers=2", "baseconv layers=2"),
        ("learning_rate=0.1", "learning_rate=0.1"),
        ("a|b", "a\\|b"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("[x](javascript:alert(1))", "\\[x\\](javascript:alert(1))"),
        ("```", "\\`\\`\\`"),
        ("**at the floor**", "\\*\\*at the floor\\*\\*"),
        ("__bold__ ~~x~~", "\\__bold_\\_ \\~\\~x\\~\\~"),
        ("\\|", "\\\\\\|"),
        ("&lt;", "&amp;lt;"),
        ("$x$", "\\$x\\$"),
    ],
)
def test_markdown(text, escaped):
    assert markdown(text) == escaped


def test_every_cell_of_a_table_is_escaped():
    table = markdown_table(["a|b", "n"], [["[x](http://y)", "1"]], right={1})
    assert table.splitlines() == [
        r"| a\|b | n |",
        "| --- | ---: |",
        r"| \[x\](http&#58;//y) | 1 |",
    ]


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("http://example.org")', "+1", "-1", "@SUM(A1)", "＝1", "＋1"]
)
def test_a_spreadsheet_runs_no_cell(text):
    assert csv_cell(text) == f"'{text}"
    table = pd.DataFrame({"model": [text, "zero"], "value": [-1.5, 2.0]})
    rows = list(csv.reader(io.StringIO(as_csv(table).decode())))
    assert rows == [["model", "value"], [f"'{text}", "-1.5"], ["zero", "2.0"]]


@pytest.mark.parametrize(
    "value",
    ["zero", "", -1, -1.5, None, True, "-0.43 … 0.70 †", "-1.5e-03 … -2", "-0.2 … 0.3 †~",
     "-0.2 … not finite ~"],
)  # fmt: skip
def test_other_cells_stay(value):
    assert csv_cell(value) is value


def test_a_figure_shows_markup_as_text():
    assert plotly("<a href='x'>x</a>") == "&lt;a href='x'&gt;x&lt;/a&gt;"


@pytest.mark.parametrize(
    "text", ["https://evil.example/free", "www.evil.example", "cc @somebody", "mailto:a@b.example"]
)
def test_no_text_becomes_a_link_or_a_mention(text):
    """GitHub links what has these marks, and shows entities as what they stand for."""
    escaped = markdown(text)
    assert not any(mark in escaped for mark in ("://", "www.", "@"))
    assert html.unescape(escaped).replace("\\", "") == text
