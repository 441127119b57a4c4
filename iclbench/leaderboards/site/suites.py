"""What suites.html shows: where models lie between chance and what can be reached, by board."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ...api.budget import Budget
from ...api.errors import IclbenchError
from ...api.record import Record
from ...api.suite import Suite, SuiteBoard
from ...console import capitalized, counted
from ...plugins import host
from ...runs.suites import find_suite, records_by_board
from ..board import Board
from ..bounds import ONE_SEED, bounds_mark, bounds_of
from ..descriptions import Descriptions
from ..formats import MARKS, UNTUNED, fixed
from ..grouping import grouped
from ..level import level_of
from ..row import ACCURACY, OPEN, credible
from ..scale import Scale, Score
from ..suite_score import SuiteRow, SuiteTable, score_suite
from ..suite_support import with_support
from . import settings
from .figure import View
from .matrix import FULL, UNSUPPORTED
from .minus import with_minus
from .suite_plots import mean_plots, suite_title

#: A suite has a section if so much of its boards has a trained row.
LEAST_PART = 0.5
#: The lowest score that is written.
LEAST = -9.99


def suite_views(
    boards: Sequence[Board], about: Descriptions, refused: Callable[[str], object]
) -> list[View]:
    """The suites of the installed plugins that records have trained rows of.

    `refused` gets a line for a suite that is not valid.
    """
    records = [row.record for board in boards for row in credible(board.rows)]
    views = []
    for _, entry in host().entries("suite"):
        try:
            suite = find_suite(entry.name)
            table = with_support(score_suite(suite, records_by_board(suite, records)))
        except IclbenchError as error:
            refused(f"suite {entry.name} is left out: {error}")
            continue
        known = {name for e in _trained(table) for name, score in e.scores.items() if score}
        if len(known) >= LEAST_PART * len(suite.boards):
            views.append(suite_view(table, about))
    return views


def suite_view(table: SuiteTable, about: Descriptions) -> View:
    """A suite's tables of trained models, that of the others, and plots against their size."""
    suite, trained = table.suite, _trained(table)
    shown = [board for board in suite.boards if any(board.name in e.scores for e in trained)]
    # Boards that are in no mean stand last.
    shown.sort(key=lambda board: board.name not in table.counted)
    others = [entry for entry in table.entries if entry.origin != "trained"]
    parts = [*_parts_of_trained(trained), ("Solvers and constructions", others)]
    return {
        "name": suite.name,
        "version": suite.version,
        "summary": suite.summary,
        "columns": [_column(board, table, about) for board in shown],
        "absent": [board.name for board in suite.boards if board not in shown],
        "tables": [
            {
                "title": title,
                "compared": any(entry.is_compared for entry in entries),
                "ranked": any(entry.rank for entry in entries),
                "rows": [_row(entry, shown, table, about) for entry in entries],
            }
            for title, entries in parts
            if entries
        ],
        "tracks": _tracks(trained),
        **_budgets(suite, trained),
        "passes": list(_passes(shown, table, about)),
        "figures": mean_plots(
            trained, {b.name: _board_title(b, table, about) for b in suite.boards}, about
        ),
    }


def _parts_of_trained(trained: Sequence[SuiteRow]) -> list[tuple[str, list[SuiteRow]]]:
    """The entries whose means are over the same boards, a part for each track, and the others."""
    same = grouped((e for e in trained if e.is_compared), lambda entry: entry.track)
    others = [entry for entry in trained if not entry.is_compared]
    parts = []
    for track, entries in same.items():
        boards = counted(min(len(entry.counted) for entry in entries), "board")
        budget = settings.OPEN_BUDGETS if track == OPEN else f"track {track}"
        parts.append((f"Trained models with the same {boards}, {budget}", entries))
    return [*parts, ("Other trained models" if parts else "Trained models", others)]


def _trained(table: SuiteTable) -> list[SuiteRow]:
    return [entry for entry in table.entries if entry.origin == "trained"]


def _budgets(suite: Suite, trained: Sequence[SuiteRow]) -> View:
    """The suite's own budget, and that of most comparable rows where it is another one."""
    own = Counter(str(board.fields.get("budget") or "") for board in suite.boards).most_common(1)
    compared = Counter(e.track for e in trained if e.is_compared and _is_budget(e.track))
    most = compared.most_common(1)
    budget = most[0][0] if most and most[0][0] != own[0][0] else ""
    return {"own_budget": own[0][0], "budget": budget}


def _is_budget(track: str) -> bool:
    try:
        Budget.parse(track)
    except ValueError:
        return False
    return True


def _column(board: SuiteBoard, table: SuiteTable, about: Descriptions) -> View:
    scale, task = table.scales[board.name], about.task(board.fields["task"])
    args = task.settings(board.fields.get("task_args", {}))
    ends = (scale.chance, board.chance), (scale.reference, scale.reference_name)
    records = (e.records[board.name] for e in table.entries if board.name in e.records)
    metric = next((task.metric(record.ranking.metric) for record in records), "")
    unit = "digits" if scale.in_digits else metric
    return {
        "task": task.name,
        "title": _board_title(board, table, about),
        "counts": board.name in table.counted,
        "about": ", ".join(filter(None, [f"{board.name}: {task.title}", args])),
        "ends": [
            (
                _short(value),
                ", ".join(filter(None, [unit, _named(name, about)])),
            )
            for value, name in ends
        ],
    }


def _named(reference: str, about: Descriptions) -> str:
    """The end of a scale with the title of its model, also after `best row: `."""
    prefix, separator, model = reference.rpartition(": ")
    return f"{prefix}{separator}{about.model(model).title}"


def _board_title(board: SuiteBoard, table: SuiteTable, about: Descriptions) -> str:
    """The title of the board's task; where the suite has several of it, what tells it apart."""
    task = board.fields["task"]
    if sum(other.fields["task"] == task for other in table.suite.boards) == 1:
        return about.task(task).title
    records = (e.records[board.name] for e in table.entries if board.name in e.records)
    titled = next((record.main.title.partition(": ")[2] for record in records), "")
    name = titled or board.name.replace("-", " ")
    return capitalized(name)


def _tracks(entries: Sequence[SuiteRow]) -> str:
    """How many rows each track has, with what the track allows."""
    counts = Counter(entry.track for entry in entries)
    return "; ".join(
        f"{count} with {settings.OPEN_BUDGETS}"
        if track == OPEN
        else f"{count} of {settings.track_in_words(track)}"
        for track, count in counts.most_common()
    )


def _passes(boards: Sequence[SuiteBoard], table: SuiteTable, about: Descriptions) -> Iterator[str]:
    """Each trained model above 100% on a board, with its value and the reference's."""
    for entry in _trained(table):
        for board in boards:
            scale, score = table.scales[board.name], entry.scores.get(board.name)
            if not _is_beyond(score):
                continue
            record = entry.records[board.name]
            metric = about.task(board.fields["task"]).metric(record.ranking.metric)
            values = [("digits" if scale.in_digits else metric, level_of(record).value,
                       scale.reference)]  # fmt: skip
            values += _accuracies(record, board, table)
            compared = ", ".join(
                f"{name} {_short(value)} against {_short(reference)}"
                for name, value, reference in values
            )
            yield (
                f"{suite_title(entry, about)} ({entry.track}) passes "
                f"{about.model(scale.reference_name).title} on "
                f"{_board_title(board, table, about)}: {compared}"
            )


def _accuracies(
    record: Record, board: SuiteBoard, table: SuiteTable
) -> list[tuple[str, float | None, float | None]]:
    """The accuracies of a model and of the reference, which may not be what a board ranks by."""
    name = table.scales[board.name].reference_name
    of_reference = (
        entry.records[board.name]
        for entry in table.entries
        if entry.origin != "trained" and board.name in entry.records
    )
    reference = next((one for one in of_reference if one.spec.model == name), None)
    if reference is None or record.ranking.metric == ACCURACY:
        return []
    if ACCURACY not in record.metrics or ACCURACY not in reference.metrics:
        return []
    return [(ACCURACY, record.metrics[ACCURACY].mean, reference.metrics[ACCURACY].mean)]


def _short(value: float | None) -> str:
    return "unknown" if value is None else with_minus(f"{value:.3g}")


def _is_beyond(score: Score | None) -> bool:
    """Whether a score is written as more than 100%."""
    return score is not None and round(score.value, 3) > 1


def _row(
    entry: SuiteRow, boards: Sequence[SuiteBoard], table: SuiteTable, about: Descriptions
) -> View:
    first = next(iter(entry.records.values()))
    counts = [_count(count) for count in entry.parameters or ()]
    return {
        "model": first.spec.model,
        "title": suite_title(entry, about),
        "mark": UNTUNED if entry.tuned == "untuned" else MARKS.get(entry.origin, ""),
        "track": entry.track,
        "tuned": entry.tuned,
        "mean": _percent(entry.mean),
        "interval": f"{_interval(entry.mean)} {ONE_SEED * entry.has_one_seed}".strip(),
        "rank": str(entry.rank or ""),
        "boards": f"{len(entry.counted)}/{len(table.counted)}",
        "parameters": "–".join(dict.fromkeys(counts)),
        "cells": [_cell(entry, board.name, table.scales[board.name]) for board in boards],
    }


def _cell(entry: SuiteRow, board: str, scale: Scale) -> View | None:
    """A score with its color; without an `id` where the model can't do the board; or nothing."""
    record, score = entry.records.get(board), entry.scores.get(board)
    if record is None and board in entry.unsupported:
        reason = f"The model can't do this board: {entry.unsupported[board]}"
        return {"id": "", "text": UNSUPPORTED, "about": reason, "counts": True}
    if record is None or score is None:
        return None
    passed = f"passes the reference, {scale.reference_name}" if _is_beyond(score) else ""
    return {
        "id": record.id,
        "text": _percent(score),
        "about": ", ".join(filter(None, [_interval(score), passed])),
        "bounds": _bounds_mark(record),
        "counts": board in entry.counted if entry.is_compared else not scale.is_relative,
        "percent": round(FULL * score.clipped.value),
    }


def _bounds_mark(record: Record) -> str:
    bounds = bounds_of(record.metrics[record.ranking.metric], record.ranking)
    return bounds_mark(bounds, sum(seed.seed is not None for seed in record.seeds))


def _percent(score: Score | None) -> str:
    return "" if score is None else f"{_written(score.value)}%"


def _interval(score: Score | None) -> str:
    if score is None or score.low is None or score.high is None:
        return ""
    return f"{_written(score.low)} … {_written(score.high)}%"


def _count(parameters: int) -> str:
    """A number of parameters in few characters: 40, 1.9k, 28k, 1.2M."""
    if parameters < 1_000:
        return str(parameters)
    if parameters < 9_950:  # which is 10k when rounded
        return f"{parameters / 1e3:.1f}k"
    return f"{parameters / 1e3:,.0f}k" if parameters < 999_500 else f"{parameters / 1e6:,.1f}M"


def _written(part: float) -> str:
    """A part in percent; what is far below 0 is not written out."""
    if not math.isfinite(part) or part < LEAST:
        return with_minus(f"< {100 * LEAST:.0f}")
    return with_minus(fixed(100 * part, 1))
