"""What suites.html shows: where models lie between chance and what can be reached, by board."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...api.errors import IclbenchError
from ...api.record import Record
from ...api.suite import SuiteBoard
from ...console import capitalized
from ...plugins import host
from ...runs.suites import find_suite, records_by_board
from ..board import Board
from ..descriptions import Descriptions
from ..formats import MARKS, ONE_SEED, UNTUNED, bounds_mark
from ..row import OPEN, bounds_of, credible
from ..scale import Scale, Score
from ..sizes import known_parameters
from ..suite_score import SuiteRow, SuiteTable, mean_score, score_suite
from . import settings
from .figure import View, figure
from .minus import with_minus
from .plots import plot

#: A suite has a section if so much of its boards has a trained row, and a plot of so many models.
LEAST_PART, LEAST_MODELS = 0.5, 4
#: The lowest score that is written.
LEAST = -9.99
#: The color of a score of 1, in percent of the style sheet's.
FULL = 85


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
            table = score_suite(suite, records_by_board(suite, records))
        except IclbenchError as error:
            refused(f"suite {entry.name} is left out: {error}")
            continue
        known = {name for e in _trained(table) for name, score in e.scores.items() if score}
        if len(known) >= LEAST_PART * len(suite.boards):
            views.append(suite_view(table, about))
    return views


def suite_view(table: SuiteTable, about: Descriptions) -> View:
    """A suite's table of trained models, that of the others, and plots against their size."""
    suite = table.suite
    shown = [
        board for board in suite.boards if any(board.name in e.scores for e in _trained(table))
    ]
    others = [entry for entry in table.entries if entry.origin != "trained"]
    return {
        "name": suite.name,
        "version": suite.version,
        "summary": suite.summary,
        "columns": [_column(board, table, about) for board in shown],
        "absent": [board.name for board in suite.boards if board not in shown],
        "tables": [
            ("Trained models", [_row(e, shown, table, about) for e in _trained(table)]),
            ("Solvers and constructions", [_row(e, shown, table, about) for e in others]),
        ],
        "tracks": _tracks(_trained(table)),
        "passes": list(_passes(shown, table, about)),
        "figures": _plots(_trained(table), about),
    }


def _trained(table: SuiteTable) -> list[SuiteRow]:
    return [entry for entry in table.entries if entry.origin == "trained"]


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
        "about": ", ".join(filter(None, [f"{board.name}: {task.title}", args])),
        "ends": [
            (
                "unknown" if value is None else with_minus(f"{value:.3g}"),
                ", ".join(filter(None, [unit, about.model(name).title])),
            )
            for value, name in ends
        ],
    }


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
    """The trained models above 100%, each with the references and the boards where it is."""
    for entry in _trained(table):
        passed: dict[str, list[str]] = {}
        for board in boards:
            if _is_beyond(entry.scores.get(board.name)):
                reference = table.scales[board.name].reference_name
                title = _board_title(board, table, about)
                passed.setdefault(about.model(reference).title, []).append(title)
        names = [f"{name} on {' and '.join(titles)}" for name, titles in passed.items()]
        if names:
            yield f"{_title(entry, about)} ({entry.track}) passes {', and '.join(names)}"


def _is_beyond(score: Score | None) -> bool:
    """Whether a score is written as more than 100%."""
    return score is not None and round(score.value, 3) > 1


def _row(
    entry: SuiteRow, boards: Sequence[SuiteBoard], table: SuiteTable, about: Descriptions
) -> View:
    first = next(iter(entry.records.values()))
    done = sum(score is not None for score in entry.scores.values())
    counts = [_count(count) for count in entry.parameters or ()]
    return {
        "model": first.spec.model,
        "title": _title(entry, about),
        "mark": UNTUNED if entry.tuned == "untuned" else MARKS.get(entry.origin, ""),
        "track": entry.track,
        "tuned": entry.tuned,
        "mean": _percent(entry.mean),
        "interval": f"{_interval(entry.mean)} {ONE_SEED * entry.has_one_seed}".strip(),
        "boards": f"{done}/{len(table.suite.boards)}",
        "parameters": "–".join(dict.fromkeys(counts)),
        "cells": [_cell(entry, board.name, table.scales[board.name]) for board in boards],
    }


def _cell(entry: SuiteRow, board: str, scale: Scale) -> View | None:
    record, score = entry.records.get(board), entry.scores.get(board)
    if record is None or score is None:
        return None
    passed = f"passes the reference, {scale.reference_name}" if _is_beyond(score) else ""
    return {
        "id": record.id,
        "text": _percent(score),
        "about": ", ".join(filter(None, [_interval(score), passed])),
        "bounds": _bounds_mark(record),
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


def _in_percent(part: float | None) -> float | None:
    return None if part is None else 100 * part


def _count(parameters: int) -> str:
    """A number of parameters in few characters: 40, 1,860, 28k, 1.2M."""
    if parameters < 10_000:
        return f"{parameters:,}"
    return f"{parameters / 1e3:,.0f}k" if parameters < 1e6 else f"{parameters / 1e6:,.1f}M"


def _written(part: float) -> str:
    """A part in percent; what is far below 0 is not written out."""
    if not math.isfinite(part) or part < LEAST:
        return with_minus(f"< {100 * LEAST:.0f}")
    # Adding 0 turns a rounded −0 into 0.
    return with_minus(f"{round(100 * part, 1) + 0.0:.1f}")


@dataclass(frozen=True)
class _Group:
    """Models of one track with scores on the same boards, whose means can be compared."""

    track: str
    boards: tuple[str, ...]
    members: tuple[SuiteRow, ...]

    def mean(self, entry: SuiteRow) -> Score:
        """The entry's mean over the group's boards."""
        mean = mean_score(score for name in self.boards if (score := entry.scores.get(name)))
        assert mean is not None
        return mean


def _groups(entries: Sequence[SuiteRow]) -> list[_Group]:
    """The group with the most scores and that with the most models, of those with enough models."""
    scored = [(entry.track, _boards(entry), entry) for entry in entries]
    # Rows without a track chose their own budgets.
    kinds = dict.fromkeys((track, has) for track, has, _ in scored if has and track != OPEN)
    groups = []
    for track, boards in kinds:
        members = tuple(e for t, has, e in scored if t == track and set(has) >= set(boards))
        groups.append(_Group(track, boards, members))
    large = [group for group in groups if len(group.members) >= LEAST_MODELS]
    if not large:
        return []
    most_scores = max(large, key=lambda g: (len(g.members) * len(g.boards), len(g.boards)))
    most_models = max(large, key=lambda g: (len(g.members), len(g.boards)))
    return [most_scores] if most_models is most_scores else [most_scores, most_models]


def _boards(entry: SuiteRow) -> tuple[str, ...]:
    return tuple(sorted(name for name, score in entry.scores.items() if score is not None))


def _title(entry: SuiteRow, about: Descriptions) -> str:
    """The entry's label, with the title of its model for the name."""
    model = next(iter(entry.records.values())).spec.model
    return entry.label.replace(model, about.model(model).title, 1)


def _plots(entries: Sequence[SuiteRow], about: Descriptions) -> list[View]:
    """The mean of comparable models against their parameters and the state of a layer."""
    return [drawn for group in _groups(entries) for drawn in _plots_of(group, about)]


def _plots_of(group: _Group, about: Descriptions) -> list[View]:
    count = len(group.boards)
    over = f"{count} boards" if count > 1 else group.boards[0].replace("-", " ")
    sizes: dict[str, Callable[[Record], float | None]] = {
        "parameters": known_parameters,
        "state after a prompt, bytes per layer": lambda record: record.state_bytes,
    }
    drawn = []
    for axis, size in sizes.items():
        lines = []
        for entry in group.members:
            records = [entry.records[name] for name in group.boards]
            known = [value for record in records if (value := size(record))]
            if known:
                percents = ([_in_percent(part)] for part in group.mean(entry))
                line = dict(zip(("y", "low", "high"), percents, strict=True))
                hue = about.hue(records[0].spec.model)
                lines.append({"name": _title(entry, about), "x": [max(known)], "hue": hue} | line)
        if len(lines) >= LEAST_MODELS:
            title = f"Score on {over} against {axis.partition(' ')[0]}, track {group.track}"
            y = "mean score, % from chance to reference"
            drawn.append(figure(plot(title, axis, y, lines, log=False, log_x=True)))
    return drawn
