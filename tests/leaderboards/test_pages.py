"""The Markdown pages: the overview, a task's page and the precision page."""

from __future__ import annotations

from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.formats import difference, rank
from iclbench.leaderboards.pages import GENERATED


def test_the_overview_marks_origins_and_rows_at_the_floor(built):
    page = (built / "README.md").read_text("utf-8")
    lines = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    cells = {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[:7]}
    assert list(cells)[:2] == ["model", "floor"]
    assert cells["model"] == ["categorical", "least-squares", "least-squares-prefixes"]
    assert cells["least-squares-qr"][1].startswith("**")
    assert cells["least-squares-qr"][1].endswith("▲")
    assert cells["zero"][1].endswith("▲")
    assert "**" not in cells["zero"][1]
    # The cell shows the model's best row, whether it is trained or constructed.
    board = next(b for b in leaderboard(built / "records") if len(b.rows) == 5)
    best = next(row for row in board.rows if row.record.spec.model == "baseconv")
    assert cells["baseconv"][1].endswith({"trained": "●", "constructed": "◆"}[best.origin])
    assert "v1" in page
    assert "(tasks/categorical.md)" in page


def test_a_task_page_shows_every_row_with_its_command(built):
    page = (built / "tasks" / "least-squares.md").read_text("utf-8")
    assert page.startswith(GENERATED)
    for text in ("float32", "float64", "◆ constructed: gd-causal", "● trained", "20 × 16",
                 "cpu (1 threads)", "iclbench run --model zero", "64 prompts"):  # fmt: skip
        assert text in page
    board = next(b for b in leaderboard(built / "records") if len(b.rows) == 5)
    for row in board.rows:
        assert f"# {rank(row)} {row.label}: {row.file}\n{row.record.command}" in page
    assert difference(board.rows[1].above, "log") in page


def test_the_precision_page_shows_errors_alone(built):
    page = (built / "precision.md").read_text("utf-8")
    assert "at the floor" in page
    assert "least-squares-qr" in page
    assert "categorical" not in page
