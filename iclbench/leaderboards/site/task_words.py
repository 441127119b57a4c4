"""What the page of a task says of its floor, its score, its ranks and its budgets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...api.errors import IclbenchError
from ...api.task import Task
from ...console import capitalized
from ...plugins import host
from .. import formats
from ..arguments import argument_pairs
from ..board import Board
from ..board_names import differing_arguments, told_apart
from ..descriptions import Description, Descriptions
from ..level import has_digits_level
from ..paired import SIGNIFICANCE
from ..rank_legend import UNRANKED
from ..scale import board_scale
from . import settings

#: What a floor of each kind is; `none` is in `_without_floor`.
_FLOORS = {
    "exact": "The floor is the attainable error: that of the exact answer to the rounded prompt, "
    "rounded once to the dtype, or half a unit in the last place if that is larger.",
    "bayes": "The prompt does not determine the answer; the floor is the error of the best "
    "predictor.",
    "bound": "The floor is a bound that no model is expected to pass.",
}


def floor_in_words(name: str, boards: Sequence[Board], about: Descriptions) -> str:
    """What the floor of the task is, by the task itself, and what it is on its first board."""
    try:
        summary = host().load("task", name, Task).floor_summary
    except IclbenchError:
        summary = ""
    summary = re.sub(r"`([^`]+)`", lambda match: about.task(name).metric(match[1]), summary)
    kind = boards[0].evaluation.floor.kind
    if kind == "none":
        return _without_floor(boards[0], summary, about)
    return f"{_FLOORS[kind]} Here: {summary[:1].lower()}{summary[1:]}" if summary else _FLOORS[kind]


def _without_floor(board: Board, summary: str, about: Descriptions) -> str:
    """What stands in for a floor: a target that models can pass, a solver, or the best row."""
    # A task's own summary may begin with `No floor: ` or `No floor, but a target: `.
    is_said = summary.lower().startswith("no floor") and ": " in summary
    reason = summary.partition(": ")[2] if is_said else summary
    if board.floor is None:
        solver = board_scale(board).reference_name
        named = f"the best solver, {about.model(solver).title}," if solver else "the best row"
        text = f"There is no floor; {named} is the reference, which models can pass."
        return f"{text} {capitalized(reason)}".rstrip()
    text = f"There is no floor. The reference is a target that models can pass: {board.floor.label}"
    return f"{text}, {reason}" if reason else f"{text}."


def measure_in_words(board: Board, about: Description) -> str:
    """The statistic that ranks, such as mean digits of the error."""
    metric = about.metric(board.ranking.metric)
    return f"mean {formats.digits_of(metric) if board.has_digits else metric}"


def score_in_words(board: Board, about: Description) -> str:
    """What ranks, on which scale."""
    measure = measure_in_words(board, about)
    if board.has_digits:
        return f"Ranked by the {measure}. {formats.DIGITS_OF_ERROR}"
    text = f"Ranked by the {measure}; {board.ranking.better} is better."
    if has_digits_level(board.first):
        text += " Home and suites show the digits of this mean: it spans orders of magnitude."
    return text


def tracks_in_words(boards: Sequence[Board]) -> str:
    """The tracks of the trained rows, each explained."""
    names = {row.track for board in boards for row in board.rows if row.is_trained}
    parts = [settings.track_in_words(name, " is ") for name in settings.longest_first(names - {""})]
    budgets = (
        f"Rows of one track had the same target training budget: {'; '.join(parts)}. A speed test "
        "before training converted it to steps; seeds that diverged stopped early."
        if parts
        else ""
    )
    free = "Rows with an open budget were trained for as long as their authors chose."
    return " ".join(filter(None, [budgets, free if "" in names else ""]))


#: The test behind ranks, on a line; see `..ranking`.
RANK_TEST = (
    f"A paired test of two rows' means at level {SIGNIFICANCE:g}, Holm-corrected for all pairs of "
    "rows that are ranked together. Few seeds make ranks wide."
)


def ranks_in_words(boards: Sequence[Board]) -> str:
    """How rows are ranked, and why a rank is wide; empty without a trained row."""
    if not any(row.is_trained for board in boards for row in board.rows):
        return ""
    return (
        "Trained rows of one track and dtype are ranked together. A rank such as 2–5 starts after "
        "the rows that are significantly better and ends before those that are significantly "
        f"worse, in a paired test at level {SIGNIFICANCE:g} with Holm's correction for all pairs "
        "of rows. The test includes the variance of seeds: few seeds make ranks wide, even if each "
        "row's own 95% interval is narrow. A row has no rank if "
        f"{UNRANKED.replace('*', '')}, or if it is alone in its track. "
        "The other rows, below them, are for reference."
    )


def inputs_in_words(boards: Sequence[Board], about: Descriptions) -> str:
    """Which trained models are given something else than tokens; empty where none is."""
    names = {r.record.spec.model for board in boards for r in board.rows if r.is_trained}
    models = [about.model(name) for name in sorted(names)]
    special = [f"{model.title} reads {model.reads}" for model in models if model.reads]
    if not special:
        return ""
    others = " The others read tokens." if len(special) < len(models) else ""
    return f"All models get the same prompts, in different forms: {'; '.join(special)}.{others}"


def evaluation_title(board: Board, about: Description) -> str:
    """The task's arguments in words, after its title if that is not its name."""
    args = about.settings(board.evaluation.task_args) or "default arguments"
    named = board.title.partition(": ")[2] or board.title
    return args if board.title == board.task else f"{capitalized(named)} · {args}"


def evaluation_titles(boards: Sequence[Board], about: Descriptions) -> list[str]:
    """Each board's arguments and dtype in words, with what tells it from the others."""
    names = [f"{evaluation_title(b, about.task(b.task))}, {b.dtype}" for b in boards]
    names = told_apart_by_prompts(names, boards)
    return told_apart_by_evaluation(names, boards)


def short_titles(boards: Sequence[Board], about: Descriptions) -> list[str]:
    """The title of each, with what tells a task's apart: dtype, data, arguments and prompts.

    Arguments that a task does not put in words are there as `name=value` where nothing else helps.
    """
    dtypes = {board.dtype for board in boards}
    names = [about.task(b.task).title + f", {b.dtype}" * (len(dtypes) > 1) for b in boards]
    names = told_apart(names, [board.title.partition(": ")[2] for board in boards])
    differing = differing_arguments(names, [board.evaluation.task_args for board in boards])
    words = [about.task(b.task).settings(a) for b, a in zip(boards, differing, strict=True)]
    names = told_apart(names, words)
    names = told_apart_by_prompts(names, boards)
    return told_apart(names, [argument_pairs(args) for args in differing])


def told_apart_by_prompts(names: Sequence[str], boards: Sequence[Board]) -> list[str]:
    """The names, with the number of prompts where equal ones differ."""
    return told_apart(names, [f"{board.evaluation.prompts:,} prompts" for board in boards])


def told_apart_by_evaluation(names: Sequence[str], boards: Sequence[Board]) -> list[str]:
    """The names, with the task's version and the evaluation's seed where equal ones differ."""
    names = told_apart(names, [f"version {b.task_version}" for b in boards])
    return told_apart(names, [f"evaluation seed {b.first.spec.eval_seed}" for b in boards])


def setting_in_words(board: Board, about: Description) -> str:
    """The data, if the board's title names them, and the task's arguments: `emoji, d = 16`."""
    data = board.title.partition(": ")[2]
    return ", ".join(filter(None, [data, about.settings(board.evaluation.task_args)]))
