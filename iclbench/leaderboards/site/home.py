"""What index.html shows: a dot plot for each family of tasks, digits against compute, findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import formats
from .. import verdict_words as words
from ..board import Board
from ..curves import median_curve
from ..descriptions import Descriptions
from ..findings import Judgement
from ..grouping import grouped
from ..representative import is_one_training
from ..row import Row
from . import dotplot, settings, svg
from .figure import View
from .finding_view import finding_view, in_order
from .panel_words import panel_sentence
from .plots import Plot, has_point, plot

#: The most curves whose names have room beside the plot of digits against compute, and its size.
MOST_CURVES, COMPUTE = 10, svg.Size(376, 200, 46, 170)
#: What follows the name of a model of which one seed is shown.
OF_ONE_SEED = ", one seed"
#: Where the findings of a study are explained, and those whose study has no page.
STUDY, FINDINGS = "studies/{}.html", "findings.html#{}"
#: The findings that are shown, and the order of verdicts: one of each comes first.
MOST_FINDINGS = 3
#: The task's arguments that a finding's sentence tells beside the budget.
MOST_ARGUMENTS = 2
_VERDICTS = ("reproduced", "contradicted", "in kind", "not shown", "not run")


def families(boards: Iterable[Board], about: Descriptions) -> dict[str, list[Board]]:
    """The boards of each group of tasks, the largest groups first and unnamed ones last."""
    groups = grouped(boards, lambda board: about.task(board.task).group)

    def order(group: str) -> tuple[bool, int, str]:
        tasks = {board.task for board in groups[group]}
        return all(about.task(t).title == t for t in tasks), -len(tasks), group

    return {group: groups[group] for group in sorted(groups, key=order)}


def main_board(boards: Sequence[Board]) -> Board:
    """The board that stands for a family: of a track, then by digits, with most trained models.

    Only the boards count that stand for their tasks.
    """

    def key(board: Board) -> tuple[bool, bool, bool, int, int, str]:
        models = {row.record.spec.model for row in board.rows if row.is_trained}
        return (bool(models), board.has_tracks, board.has_digits, len(models), len(board.rows),
                board.title)  # fmt: skip

    return max(settings.main_boards(boards), key=key)


def panels(boards: Sequence[Board], about: Descriptions) -> list[View]:
    """A dot plot for each family: its main board's trained models, and lines of reference."""
    views = []
    for group, members in families(boards, about).items():
        board = main_board(members)
        for track in board.tracks[:1]:
            drawn = dotplot.board_dots(board, [track], about, dotplot.MOST_ROWS, ranks=True)
            if drawn is not None:
                models = {row.record.spec.model for row in settings.trained(board, track)}
                caption = _setting(board, [track], about, len(models), dotplot.MOST_ROWS)
                caption["sentence"] = panel_sentence(board, track, about)
                marks = {mark.kind for mark in dotplot.references(board)}
                views.append({"group": group, "svg": drawn, "marks": marks, **caption})
    return views


def _setting(
    board: Board, tracks: Sequence[str], about: Descriptions, models: int, most: int
) -> View:
    """What a panel says of its board, and that it shows the best of its models where it does."""
    task = about.task(board.task)
    setting = settings.in_words(board, tracks, task)
    if models > most:
        setting += f" · best {most} of {models} models"
    return {"task": board.task, "title": task.title, "setting": setting}


def compute_panel(boards: Sequence[Board], about: Descriptions) -> View | None:
    """Digits against operations of training, on the board by digits that has most such curves.

    A board of a track comes before others, as it does among the evaluations of a task. Each model
    is shown by its longest training.
    """
    drawn = [
        (board, rows)
        for board in settings.main_boards(boards)
        if board.has_digits and (rows := _longest_trained(board))
    ]
    if not drawn:
        return None
    board, rows = max(drawn, key=lambda one: (one[0].has_tracks, len(one[1])))
    usual, shown = board.tracks[0], rows[:MOST_CURVES]
    lines = [
        _compute_line(row)
        | {
            "name": about.model(row.record.spec.model).title
            + f", {row.track_name}" * (row.track != usual)
            + OF_ONE_SEED * is_one_training(row.record),
            "page": f"runs/{row.record.id}.html",
            "hue": about.hue(row.record.spec.model),
        }
        for row in shown
    ]
    title, x = "Digits against training compute", "training operations per seed"
    panel = svg.draw(
        plot(title, x, "validation digits", lines, log=False, log_x=True), size=COMPUTE
    )
    tracks = settings.longest_first({row.track for row in shown})
    return {"svg": panel, **_setting(board, tracks, about, len(rows), MOST_CURVES)}


def _longest_trained(board: Board) -> list[Row]:
    """The rows with a curve of operations: of each model's longest track the best, best first."""
    of_models: dict[str, Row] = {}
    for track in settings.longest_first(board.tracks):
        for row in settings.best_by_model(filter(_has_operations, settings.trained(board, track))):
            of_models.setdefault(row.record.spec.model, row)
    return settings.best_first(of_models.values())


def _has_operations(row: Row) -> bool:
    """Whether any point of the row's curve can be shown against its operations."""
    line = _compute_line(row)
    return None not in line["x"] and has_point(line, log=False, log_x=True)


def _compute_line(row: Row) -> Plot:
    """The digits on validation prompts against operations; without points if there are none."""
    curve = row.record.validation_curve
    return {"x": curve.operations, "y": median_curve(curve)} if curve else {"x": [], "y": []}


def findings(judgements: Sequence[Judgement], about: Descriptions) -> list[View]:
    """The findings of papers to show first: of different verdicts and different studies.

    Claims of papers come before own questions, and criteria that were written before the run
    before others. A claim that was tested several times has the verdict of its longest training.
    """

    def order(judgement: Judgement) -> tuple[bool, bool, bool, int]:
        finding = judgement.finding
        return (judgement.verdict == "not run", finding.own_question,
                words.when(finding) != "before the run",
                _VERDICTS.index(judgement.verdict))  # fmt: skip

    longest = [judgement for judgement in judgements if not judgement.finding.shorter_run]
    seen: set[str] = set()
    first: list[Judgement] = []
    rest: list[Judgement] = []
    for judgement in sorted(longest, key=order):
        new = {judgement.verdict, judgement.finding.records}
        if seen & new:
            rest.append(judgement)
        else:
            first.append(judgement)
            seen |= new
    return [
        finding_view(judgement, about)
        | {
            "setting": words.setting(judgement, about, most_arguments=MOST_ARGUMENTS),
            "page": (FINDINGS if judgement.verdict == "not run" else STUDY).format(
                judgement.finding.records
            ),
        }
        for judgement in [*first, *rest][:MOST_FINDINGS]
    ]


def by_study(judgements: Iterable[Judgement], about: Descriptions) -> dict[str, list[View]]:
    """The findings of each study, as `in_order` has them."""
    studies = grouped(in_order(judgements), lambda judgement: judgement.finding.records)
    return {name: [finding_view(o, about) for o in members] for name, members in studies.items()}


def floor_text(board: Board) -> str:
    """The floor's digits or mean; empty if there is none."""
    return "" if board.floor is None else formats.score(board.floor.score, board.ranking)
