"""The Markdown pages: the overview, a task's page and the precision page."""

from __future__ import annotations

from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.formats import difference, rank
from iclbench.leaderboards.pages import GENERATED, overview_page, stale_page, task_page
from iclbench.runs.code import installed_code


def test_the_overview_marks_origins_and_rows_at_the_floor(built):
    page = (built / "README.md").read_text("utf-8")
    lines = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    cells = {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[:8]}
    assert list(cells)[:2] == ["model", "floor"]
    assert cells["model"] == ["categorical", "least-squares", "least-squares-prefixes"]
    assert cells["floor"][1].endswith("attainable")
    assert cells["▲ least-squares-qr"][1].startswith("**")
    assert cells["▲ zero"][1].endswith("chance")
    assert "**" not in cells["▲ zero"][1]
    # Trained and constructed weights of one model are two lines; each has the best row.
    board = next(b for b in leaderboard(built / "records") if len(b.rows) == 5)
    best = max(row.score for row in board.rows[:2])
    assert cells["○ baseconv"][1].startswith(f"{best:.2f}")
    assert "◆ baseconv" in cells
    assert "v1" in page
    assert "(tasks/categorical.md)" in page


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
    page = overview_page([board, other])
    heading = next(line for line in page.splitlines() if line.startswith("| model"))
    assert [cell.strip() for cell in heading.strip("|").split("|")] == [
        "model", "least-squares", "least-squares: a stand-in"]  # fmt: skip
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
