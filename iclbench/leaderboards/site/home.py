"""What index.html shows: a dot plot for each family of tasks, digits against compute, findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import formats
from ..board import Board
from ..curves import median_curve
from ..descriptions import Descriptions
from ..findings import Outcome
from ..row import Row
from . import compute, dotplot
from .figure import View

#: Where the findings of a study are explained.
STUDY = "findings.html#{}"
#: The findings that are shown, and the order in which verdicts are preferred.
MOST_FINDINGS = 3
_VERDICTS = ("reproduced", "contradicted", "in kind", "not shown", "not run")


def families(boards: Iterable[Board], about: Descriptions) -> dict[str, list[Board]]:
    """The boards of each group of tasks, the largest groups first and unnamed ones last."""
    groups: dict[str, list[Board]] = {}
    for board in boards:
        groups.setdefault(about.task(board.task).group, []).append(board)

    def order(group: str) -> tuple[bool, int, str]:
        tasks = {board.task for board in groups[group]}
        return all(about.task(t).title == t for t in tasks), -len(tasks), group

    return {group: groups[group] for group in sorted(groups, key=order)}


def main_board(boards: Sequence[Board]) -> Board:
    """The board that stands for a family: by digits if any is, with the most trained models."""

    def key(board: Board) -> tuple[bool, bool, int, int, str]:
        models = {row.record.spec.model for row in board.rows if row.is_trained}
        return bool(models), board.has_digits, len(models), len(board.rows), board.title

    return max(boards, key=key)


def panels(boards: Sequence[Board], about: Descriptions) -> list[View]:
    """A dot plot for each family: its main board's trained models, and lines of reference."""
    views = []
    for group, members in families(boards, about).items():
        board = main_board(members)
        drawn = dotplot.board_dots(board, about, most=dotplot.MOST_ROWS)
        if drawn is None:
            continue
        task = about.task(board.task)
        views.append({"group": group, "task": board.task, "title": task.title, "svg": drawn})
    return views


def best_by_model(rows: Iterable[Row]) -> list[Row]:
    """The best row of each model, best first."""
    best: dict[str, Row] = {}
    for row in rows:
        model = row.record.spec.model
        if model not in best or row.goodness > best[model].goodness:
            best[model] = row
    return sorted(best.values(), key=lambda row: -row.goodness)


def compute_panel(boards: Sequence[Board], about: Descriptions) -> View | None:
    """Digits against operations of training, of the board by digits with the most such curves."""

    def curves(board: Board) -> list[Row]:
        trained = [row for row in board.rows if _has_operations(row)]
        return best_by_model(trained)[: compute.MOST_CURVES]

    ranked = [board for board in boards if board.has_digits]
    board = max(ranked, key=lambda board: len(curves(board)), default=None)
    rows = [] if board is None else curves(board)
    if board is None or not rows:
        return None
    lines = []
    for row in rows:
        curve = row.record.validation_curve
        assert curve is not None
        x = [v for v in curve.operations if v is not None]
        name = about.model(row.record.spec.model).title
        lines.append(compute.CurveLine(name, f"runs/{row.record.id}.html", x, median_curve(curve)))
    return {"task": board.task, "title": about.task(board.task).title, "svg": compute.curves(lines)}


def _has_operations(row: Row) -> bool:
    curve = row.record.validation_curve
    return row.is_trained and curve is not None and None not in curve.operations


def findings(outcomes: Sequence[Outcome]) -> list[View]:
    """The findings of papers to show first: with a verdict, and of different studies."""
    ordered = sorted(outcomes, key=lambda outcome: _VERDICTS.index(outcome.verdict))
    studies: set[str] = set()
    first: list[Outcome] = []
    rest: list[Outcome] = []
    for outcome in ordered:
        (rest if outcome.finding.records in studies else first).append(outcome)
        studies.add(outcome.finding.records)
    return [
        {
            "claim": outcome.finding.claim,
            "source": outcome.finding.source,
            "verdict": outcome.verdict,
            "page": STUDY.format(outcome.finding.records),
        }
        for outcome in [*first, *rest][:MOST_FINDINGS]
    ]


def by_study(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """The findings of each study, in their order."""
    studies: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        studies.setdefault(outcome.finding.records, []).append(outcome)
    return studies


def floor_text(board: Board) -> str:
    """The floor's digits or mean; empty if there is none."""
    return "" if board.floor is None else formats.score(board.floor.score, board.ranking)
