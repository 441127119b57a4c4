"""Tables as text: what they show of a board."""

from __future__ import annotations

import numpy as np
import pytest

from iclbench.leaderboards.tables import legend, render


def cells(board) -> dict[str, dict[str, str]]:
    """The rendered table: a line's cells by column, by the line's label."""
    lines = [line.strip("|").split("|") for line in render(board, "github").splitlines()
             if line.startswith("|")]  # fmt: skip
    head, _, *body = [[cell.strip() for cell in line] for line in lines]
    return {line[1]: dict(zip(head, line, strict=True)) for line in body}


def test_the_floor_is_a_row_without_a_rank(board):
    statistics = board.records[0].floor["squared_error"]
    assert (board.floor.label, board.floor.score) == ("attainable", statistics.digits.mean)
    floor = cells(board)["attainable"]
    assert (floor["origin"], floor["rank"]) == ("", "")
    assert (floor["median"], floor["1% worst"]) == (f"{statistics.median:.2e}",
                                                    f"{statistics.q99:.2e}")  # fmt: skip


def test_the_table_shows_every_fact(board):
    table = cells(board)
    trained, solver = table["baseconv layers=1"], table["zero"]
    assert list(trained) == ["rank", "model", "origin", "digits", "95% interval", "1% worst",
                             "seeds", "median", "parameters", "time", "over seeds",
                             "mean error"]  # fmt: skip
    assert (trained["origin"], trained["seeds"]) == ("○ at chance", "2")
    assert "…" in trained["over seeds"]
    assert (solver["origin"], solver["seeds"], solver["parameters"]) == ("▲ chance", "", "0")
    assert table["least-squares-qr"]["origin"] == "▲ at the floor"
    for row in board.rows:
        line = table[row.label]
        assert line["digits"] == f"{row.statistics.digits.mean:.2f}"
        low, _, high, *_ = line["95% interval"].split()
        assert [float(low), float(high)] == pytest.approx(row.bounds[:2], abs=0.006)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_table_fits_the_terminal(board, width):
    text = render(board, width=width)
    widths = [len(line) for line in text.splitlines()]
    assert max(widths) <= width
    # The columns that a narrow table leaves out are the least important ones.
    columns = ["rank", "model", "digits", "95% interval", "1% worst", "seeds", "median"]
    shown = [name in text for name in columns]
    assert shown == sorted(shown, reverse=True)
    assert sum(shown) >= 5


def test_a_name_that_is_too_long_keeps_its_end(board):
    text = render(board, width=72)
    assert max(len(line) for line in text.splitlines()) <= 72
    assert "…" in text
    assert all(end in text for end in ("ers=1 ", "ers=2 "))


def test_the_legend_explains_the_marks_that_occur(board):
    assert "−log₁₀ of the absolute error" in legend([board])
    assert ("† one seed" in legend([board])) == any(
        row.bounds.kind != "seeds and prompts" for row in board.rows
    )
    assert np.isfinite(board.floor.score)
