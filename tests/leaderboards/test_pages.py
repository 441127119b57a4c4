"""The Markdown pages: the overview, a task's page and the precision page."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.formats import difference, rank
from iclbench.leaderboards.overview import standing_for_titles
from iclbench.leaderboards.overview_page import _overview_cell, overview_page
from iclbench.leaderboards.page_parts import GENERATED
from iclbench.leaderboards.pages import precision_page, stale_page, task_page
from iclbench.runs.code import installed_code


def overview_of(page: str, heading: str) -> dict[str, dict[str, str]]:
    """The cells of the overview's table below a heading, by model and column."""
    _, _, section = page.partition(f"## {heading}\n")
    rows = [line.split("|")[1:-1] for line in section.partition("\n## ")[0].splitlines()
            if line.startswith("| ")]  # fmt: skip
    head, *lines = [[cell.strip() for cell in row] for row in rows]
    return {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines}


def test_the_overview_has_a_table_for_each_origin(built):
    page = (built / "README.md").read_text("utf-8")
    column = "[least-squares](tasks/least-squares.md)"
    solvers = overview_of(page, "float32 · ▲ solver")
    assert solvers["floor"][column].endswith("attainable")
    assert solvers["least-squares-qr"][column].startswith("**")
    assert solvers["zero"][column].endswith(", chance")
    assert "**" not in solvers["zero"][column]
    trained = overview_of(page, "float32 · ● trained")
    board = next(b for b in leaderboard(built / "records") if len(b.rows) == 5)
    best = max(row.score for row in board.rows[:2])
    assert trained["baseconv"][column].startswith(f"{best:.2f} ○")
    assert "baseconv" in overview_of(page, "float32 · ◆ constructed")
    assert "v1" in page
    digest = hashlib.sha256((built / "rows.csv").read_bytes()).hexdigest()
    assert f"SHA-256 of rows.csv: `{digest}`" in page
    assert "2 of them were trained: 2 with open budgets" in page


def test_a_board_with_a_budget_stands_for_its_task(built):
    board = next(b for b in leaderboard(built / "records") if len(b.rows) == 5)
    few = replace(board, rows=tuple(row for row in board.rows if row.is_trained)[:1])
    record = few.rows[0].record.model_copy(update={"track": "1m"})
    tracked = replace(few, rows=(replace(few.rows[0], record=record),))
    both = [(board, [*board.rows]), (tracked, [*tracked.rows])]
    for given in (both, both[::-1]):
        assert standing_for_titles(given)[board.title].board is tracked
        assert standing_for_titles(given, [board])[board.title].board is board
    # A board without rows that are looked at stands for nothing.
    assert standing_for_titles([(tracked, []), both[0]])[board.title].board is board
    cells = overview_of(overview_page([tracked], ""), "float32 · ● trained")["baseconv"]
    assert "track" not in next(iter(cells.values()))


def test_a_task_page_shows_every_row_with_its_command(built):
    page = (built / "tasks" / "least-squares.md").read_text("utf-8")
    assert page.startswith(GENERATED)
    for text in ("float32", "float64", "◆ constructed: gd-causal", "○ trained, not tuned",
                 "20 × 16", "cpu (1 thread)", "iclbench run --model zero", "64 prompts",
                 "attainable", "1% worst", "−log₁₀ of the absolute error"):  # fmt: skip
        assert text in page
    board = next(b for b in leaderboard(built / "records") if len(b.rows) == 5)
    for row in board.rows:
        title = f"{rank(row)} {row.label}".strip()
        assert f"# {title}: {row.file}\n{row.record.command}" in page
    assert difference(board.rows[1].above, "log") in page


def test_the_precision_page_shows_errors_alone(built):
    page = (built / "precision.md").read_text("utf-8")
    assert "at the floor" in page
    assert "least-squares-qr" in page
    assert "categorical" not in page


def test_cited_rows_stand_apart_on_the_page_of_their_task(built):
    page = (built / "tasks" / "least-squares.md").read_text("utf-8")
    _, _, cited = page.partition("## Cited")
    for text in ("a model of a paper", "≈ 1.5e-13", "A paper, Figure 1", "its training"):
        assert text in cited
    assert "## Cited" not in (built / "tasks" / "categorical.md").read_text("utf-8")


def test_two_boards_of_one_task_have_a_column_each(changed, board):
    def with_title(record):
        main = record.main.model_copy(update={"title": "least-squares: a stand-in"})
        return record.model_copy(update={"evaluations": {"main": main}})

    other = changed(with_title)
    page = overview_page([board, other], "")
    assert [*overview_of(page, "float32 · ▲ solver")["zero"]] == [
        "[least-squares](tasks/least-squares.md)",
        "[least-squares: a stand-in](tasks/least-squares.md)",
    ]
    assert "## least-squares: a stand-in · float32" in task_page("least-squares", [other])


def test_stale_rows_are_listed(changed, board):
    installed = installed_code()
    assert "0 of 5 rows" in stale_page([board], installed)

    def with_other_code(record):
        old = record.plugins[0].model_copy(update={"source": "0" * 64})
        return record.model_copy(update={"plugins": [old, *record.plugins[1:]]})

    stale = changed(with_other_code)
    page = stale_page([stale], installed)
    assert "5 of 5 rows" in page
    assert all(row.file in page for row in stale.rows)
    # The other pages follow from the records alone.
    assert task_page("least-squares", [stale]) == task_page("least-squares", [board])


def test_a_task_page_says_how_many_rows_are_ranked_together(board):
    assert "Ranked rows: 2 with open budgets." in task_page("least-squares", [board])
    alone = tuple(replace(row, rank=None, unranked="alone") for row in board.rows)
    assert "Ranked rows" not in task_page("least-squares", [replace(board, rows=alone)])


def test_the_name_of_given_weights_breaks_no_table(board):
    row = next(row for row in board.rows if row.is_trained)
    spec = row.record.spec.model_copy(update={"init": "a|b<i>"})
    odd = replace(row, record=row.record.model_copy(update={"spec": spec}))
    cell = _overview_cell(odd, board)
    assert "from a" in cell
    assert "<i>" not in cell
    assert cell.count("|") == cell.count("\\|")


def test_a_floor_keeps_its_capitals(board):
    named = replace(board, floor=replace(board.floor, label="best OLS fit"))
    assert "Best OLS fit: " in precision_page([named])
