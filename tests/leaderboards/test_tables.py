"""Tables as text: what they show of a board."""

from __future__ import annotations

from iclbench.leaderboards.tables import render


def cells(board) -> dict[str, dict[str, str]]:
    """The rendered table: a line's cells by column, by the line's label."""
    lines = [line.strip("|").split("|") for line in render(board).splitlines()
             if line.startswith("|")]  # fmt: skip
    head, _, *body = [[cell.strip() for cell in line] for line in lines]
    return {line[1]: dict(zip(head, line, strict=True)) for line in body}


def test_the_floor_is_a_row_without_a_rank(board):
    median = board.records[0].floor["squared_error"].median
    assert (board.floor.label, board.floor.score) == ("attainable", median)
    floor = cells(board)["attainable"]
    assert (floor["origin"], floor["rank"], floor["median"]) == ("floor", "", f"{median:.2e}")


def test_the_table_shows_every_fact(board):
    table = cells(board)
    trained, solver = table["baseconv layers=1"], table["zero"]
    assert list(trained) == ["rank", "model", "median", "mean", "95% interval", "digits", "seeds",
                             "over seeds", "parameters", "origin", "time"]  # fmt: skip
    assert (trained["origin"], trained["seeds"]) == ("trained", "2")
    assert "…" in trained["over seeds"]
    assert (solver["origin"], solver["seeds"], solver["parameters"]) == ("solver", "", "0")
    for row in board.rows:
        assert table[row.label]["digits"] == f"{row.statistics.digits.mean:.1f}"
    assert "least-squares v2" in board.title
    assert "64 prompts" in board.title
