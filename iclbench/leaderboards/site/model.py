"""What models/MODEL.html shows: what it is, every result, learning curves, and how to run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...api.errors import UsageError
from ...api.spec import RunSpec
from ...console import capitalized
from .. import formats
from ..arguments import argument_pairs
from ..board import Board
from ..board_names import differing_arguments, told_apart
from ..curves import COST_TITLES, drawn_curve, median_curve
from ..descriptions import Descriptions
from ..grouping import grouped
from ..representative import representing, weakness
from ..row import Row
from ..scale import Scale, board_scale
from . import settings
from .figure import View, figures
from .formula import mathml
from .home import floor_text
from .magnitudes import is_error
from .minus import with_minus
from .plots import MOST_LINES, Plot, name_of, plot, spans_lines
from .strip import peers, rank_of_how_many, strip
from .task_words import setting_in_words, short_titles, told_apart_by_prompts


class Scored(NamedTuple):
    """A row with its board, what that is called, and the board's scale."""

    row: Row
    board: Board
    setting: str
    scale: Scale


def by_model(boards: Iterable[Board]) -> dict[str, list[Board]]:
    """The boards with rows of each model, in order of the models' names."""
    models: dict[str, list[Board]] = {}
    for board in boards:
        for name in {row.record.spec.model for row in board.rows}:
            models.setdefault(name, []).append(board)
    return dict(sorted(models.items()))


def model(name: str, everything: Sequence[Board], about: Descriptions) -> View:
    """The whole page of a model; `everything` are the boards of the site."""
    described = about.model(name)
    boards = [board for board in everything if _rows(board, name)]
    results = []
    for board, setting in zip(boards, _settings(boards, about), strict=True):
        scale = board_scale(board)
        results += [Scored(row, board, setting, scale) for row in _rows(board, name)]
    return {
        "about": described,
        "is_trained": any(result.row.is_trained for result in results),
        "standing": list(_standing(name, everything, about)),
        "formula": mathml(described.formula),
        "measured_state": _measured_state([result.row for result in results]),
        "results": [_result(result, about) for result in results],
        "tasks": len({board.task for board in boards}),
        "figures": figures(_learning_curves(name, _standing_boards(name, everything), about)),
        "commands": _commands(results, about),
    }


def _rows(board: Board, name: str) -> list[Row]:
    return [row for row in board.rows if row.record.spec.model == name]


def _standing_boards(name: str, everything: Sequence[Board]) -> list[Board]:
    """The main boards of the model's tasks; of a task without it there, the first that has it."""
    with_model = [board for board in everything if _rows(board, name)]
    mains = [board for board in settings.main_boards(everything) if _rows(board, name)]
    tasks = {board.task for board in mains}
    return mains + settings.main_boards(b for b in with_model if b.task not in tasks)


def _standing(name: str, everything: Sequence[Board], about: Descriptions) -> Iterator[View]:
    """The model's best row in each track of its tasks' main boards, and the best row there."""
    shown = _standing_boards(name, everything)
    # Told apart from all boards of the task, so that two models' pages name a board alike.
    tasks = {board.task for board in shown}
    of_tasks = [board for board in everything if board.task in tasks]
    names = dict(zip(map(id, of_tasks), _settings(of_tasks, about), strict=True))
    for board in sorted(shown, key=lambda one: (not one.has_tracks, about.task(one.task).title)):
        task, scale = about.task(board.task), board_scale(board)
        groups = grouped(representing(_rows(board, name)), lambda row: (row.origin, row.track))
        for members in groups.values():
            row = settings.best_first(members)[0]
            best = settings.best_first(representing(peers(row, board)) or [row])[0]
            yield {
                "id": row.record.id,
                "task": board.task,
                "title": task.title,
                "setting": ", ".join(filter(None, [names[id(board)], board.dtype])),
                "origin": row.origin,
                "track": row.track_name,
                "rank": rank_of_how_many(row, board) or (row.unranked if row.is_trained else ""),
                "score": with_minus(formats.score(row.score, board.ranking)),
                "unit": _unit(board, about),
                "strip": strip(row, board, small=True),
                **_share(scale, row, board, about),
                "best": "" if best is row else about.model(best.record.spec.model).title,
                "best_score": with_minus(formats.score(best.score, board.ranking)),
                "floor": with_minus(floor_text(board)),
            }


def _result(result: Scored, about: Descriptions) -> View:
    row, board, setting, scale = result
    task = about.task(board.task)
    return {
        "id": row.record.id,
        "task": board.task,
        "title": task.title,
        "setting": setting,
        "label": name_of(row, about),
        "origin": formats.origin(row),
        "track": row.track_name,
        "dtype": board.dtype,
        "rank": formats.rank(row),
        "score": with_minus(formats.score(row.score, board.ranking)),
        "value": row.score,
        "unit": _unit(board, about),
        "interval": with_minus(formats.score_interval(row)),
        "floor": with_minus(floor_text(board)),
        **_share(scale, row, board, about),
        "notes": formats.notes(row),
        "parameters": formats.parameters(row.record),
    }


def _share(scale: Scale, row: Row, board: Board, about: Descriptions) -> View:
    """Where a row lies from chance, 0%, to the reference, 100%, and what that is."""
    score = scale.score(row.record)
    if score is None:
        return {"share": "", "share_of": ""}
    percent = round(100 * score.value)
    text = ">100%" if percent > 100 else "<0%" if percent < 0 else f"{percent}%"
    reference = scale.reference_name or "the best row"
    if scale.reference_name and board.floor is None:
        reference = about.model(reference).title
    return {"share": text, "share_of": f"0% is chance, 100% {reference}"}


def _unit(board: Board, about: Descriptions) -> str:
    """What a board's scores are."""
    return "digits" if board.has_digits else about.metric_of(board)


def _measured_state(rows: Sequence[Row]) -> str:
    """Bytes per prompt that a layer keeps, from the records that tell it; empty without any."""
    known = sorted({row.record.state_bytes for row in rows if row.record.state_bytes is not None})
    if not known:
        return ""
    ends = f"{known[0]:,.0f}" if len(known) == 1 else f"{known[0]:,.0f} to {known[-1]:,.0f}"
    return f"{ends} bytes per layer for a prompt, in these records"


def _learning_curves(name: str, boards: Sequence[Board], about: Descriptions) -> list[Plot]:
    """What was validated while the model was trained, against operations; a line for each board.

    Digits share one figure; every other metric has its own. The last figure's note names the boards
    without a curve.
    """
    lines: dict[tuple[bool, str, str, bool], list[Plot]] = {}
    without = []
    for board, line_name in zip(boards, short_titles(boards, about), strict=True):
        trained = [row for row in representing(_rows(board, name)) if row.is_trained]
        row = max(trained, key=lambda row: row.goodness, default=None)
        if row is None:
            continue
        curve = drawn_curve(row.record)
        if curve is None:
            without.append(line_name)
            continue
        cost = "operations" if None not in curve.operations else "steps"
        line = {"name": line_name, "x": getattr(curve, cost), "y": median_curve(curve)}
        # Digits come first, and are logarithms already.
        may_be_log = not board.has_digits and is_error(board.first)
        key = not board.has_digits, _unit(board, about), cost, may_be_log
        lines.setdefault(key, []).append(line)
    plots = []
    for (_, unit, cost, may_be_log), members in sorted(lines.items(), key=lambda item: item[0]):
        words = formats.digits_of("error") if unit == "digits" else unit
        title = f"{capitalized(words)} while training"
        log_x = any(v > 0 for line in members for v in line["x"])
        log = may_be_log and spans_lines(members)
        y = f"mean {unit} on validation prompts"
        plots.append(plot(title, COST_TITLES[cost], y,
                          members, log=log, log_x=log_x, most=MOST_LINES))  # fmt: skip
    if plots and without:
        plots[-1]["note"] = f"{plots[-1]['note']} No curve: {'; '.join(without)}.".lstrip()
    return plots


def _settings(boards: Sequence[Board], about: Descriptions) -> list[str]:
    """The setting of each board of a table, with what tells a task's apart: prompts or arguments.

    As in `short_titles`, but whole; dtypes have a column.
    """
    tasks = [board.task for board in boards]
    words = [setting_in_words(board, about.task(board.task)) for board in boards]
    names = [f"{task}\n{setting}" for task, setting in zip(tasks, words, strict=True)]
    names = told_apart_by_prompts(names, boards)
    arguments = [board.evaluation.task_args for board in boards]
    differing = [argument_pairs(args) for args in differing_arguments(names, arguments)]
    return [name.partition("\n")[2].removeprefix(", ") for name in told_apart(names, differing)]


def _commands(results: Sequence[Scored], about: Descriptions) -> list[tuple[str, str]]:
    """A command for each origin: that of its best row on the board with most rows.

    Rows with several seeds come before those with one, and rows of a training budget before those
    of an open one.
    """
    best: dict[str, tuple[tuple[int, bool, int, float], Row]] = {}
    for row, board, _, scale in results:
        if row.fails_held_out:
            continue
        share = scale.share(row.record) or 0.0
        key = -weakness(row.record), bool(row.track), len(board.rows), share
        if row.origin not in best or key > best[row.origin][0]:
            best[row.origin] = key, row
    order = sorted(best, key=lambda origin: (origin != "trained", origin))
    records = [best[origin][1].record for origin in order]
    return [
        (f"{r.spec.origin}, on {about.task(r.spec.task).title}", _without_shifts(r.command))
        for r in records
    ]


def _without_shifts(command: str) -> str:
    """The command without the evaluations under shift, which are not part of the run."""
    try:
        request = RunSpec.from_command(command)
    except UsageError:  # a forged record, which is shown as it is
        return command
    return request.model_copy(update={"shift": ()}).command()
