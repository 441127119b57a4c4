"""A suite's scores as tables: the mean of every model, and each board."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..api.record import Record
from ..api.suite import SuiteBoard
from ..leaderboards.bounds import ONE_SEED
from ..leaderboards.formats import fixed, level, parameters, score_title
from ..leaderboards.grouping import grouped
from ..leaderboards.level import has_digits_level, level_name, level_of
from ..leaderboards.row import OPEN, in_track
from ..leaderboards.scale import Score
from ..leaderboards.sizes import known_parameters
from ..leaderboards.suite_score import SuiteRow, SuiteTable
from .records import bounds_legend
from .table import Cell, Column, Table

Reasons = Mapping[tuple[str, str], str]

#: What stands above the size of a layer's state after a prompt.
STATE = "bytes/layer"


_OVERALL = (
    Column("model", fit="wrap"),
    Column("score", right=True),
    Column("rank", right=True, importance=2),
    Column("boards", right=True),
    Column("origin", importance=3),
    Column("track", importance=1),
    Column("tuned", importance=4),
    Column("unsupported", right=True, importance=5),
    Column("parameters", right=True, importance=6),
    Column("state", right=True, importance=7, label=STATE),
    Column("low", right=True, extra=True),
    Column("high", right=True, extra=True),
)


def suite_parts(table: SuiteTable, reasons: Reasons | None = None) -> list[str | Table]:
    """Each entry's mean, then every board.

    `reasons` says why a model has no row on a board, by board and model.
    """
    overall = overall_table(table)
    parts: list[str | Table] = [overall.title, *_tracks(table), *_by_origin(overall)]
    without = []
    for board in table.suite.boards:
        known = any(name == board.name for name, _ in reasons or {})
        if not known and not any(board.name in entry.records for entry in table.entries):
            without.append(board.name)
            continue
        scale = table.scales[board.name]
        unit = " digits" if scale.in_digits else ""
        least, most = (
            "unknown" if v is None else level(v, scale.in_digits)
            for v in (scale.chance, scale.reference)
        )
        ends = f"0: {board.chance} ({least}{unit}), 1: {scale.reference_name} ({most}{unit})"
        beside = " · not in the mean" if scale.is_relative else ""
        metric = _metric_of(table, board)
        parts.append(_board_table(table, board, f"{board.name}{metric} · {ends}{beside}"))
        parts += _unsupported(table, board, {model for _, model in reasons or {}})
        parts += [
            f"{model}: {why}"
            for (name, model), why in (reasons or {}).items()
            if name == board.name
        ]
    return [*parts, f"no records yet: {', '.join(without)}"] if without else parts


def _by_origin(overall: Table) -> list[Table]:
    """The lines of what was trained, then those of what it is compared with.

    Where any has a score, notes name the trained ones without it and count the others.
    """
    has_score = any(row["score"].text for row in overall.rows)
    shown = [row for row in overall.rows if row["score"].text or not has_score]
    trained = [row for row in shown if row["origin"] == "trained"]
    others = [row for row in shown if row["origin"] != "trained"]
    without = [row for row in overall.rows if not row["score"].text]
    notes = (*overall.notes, *(_left_out(without) if has_score else ()))
    kinds = [rows for rows in (trained, others) if rows]
    # The notes stand below the first table.
    pairs = zip(kinds, (notes, ()), strict=False)
    return [replace(overall, rows=rows, title="", notes=below) for rows, below in pairs]


def _left_out(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The models without a score: the names of those trained in each track, and how many others."""
    names = grouped((row for row in rows if row["origin"] == "trained"), lambda row: row["track"])
    lines = [
        f"no score {in_track(track)}: " + ", ".join(dict.fromkeys(row["model"] for row in members))
        for track, members in names.items()
    ]
    others = sum(row["origin"] != "trained" for row in rows)
    return [*lines, f"no score: {others} that were not trained"] if others else lines


def _tracks(table: SuiteTable) -> list[str]:
    """What the suite is, and how many trained entries each track has; nothing without any."""
    counts = Counter(entry.track for entry in table.entries if entry.origin == "trained")
    if not counts:
        return []
    tracks = [f"{count} {in_track(track)}" for track, count in counts.most_common()]
    text = f"{table.suite.summary}\ntrained entries: {', '.join(tracks)}"
    return [f"{text}; only those with a budget are ranked" if counts[OPEN] else text]


def _unsupported(table: SuiteTable, board: SuiteBoard, told: Container[str]) -> list[str]:
    """The trained models that can't do a board, except those whose reason is told."""
    entries = (e for e in table.entries if e.origin == "trained" and board.name in e.unsupported)
    models = dict.fromkeys(next(iter(entry.records.values())).spec.model for entry in entries)
    names = [name for name in models if name not in told]
    return [f"unsupported: {', '.join(names)}"] if names else []


def overall_table(table: SuiteTable) -> Table:
    """One line per entry, with its mean over the boards, and its score on each where asked for."""
    count = len(table.counted)
    rows = [
        {
            "model": entry.label,
            "score": _score(entry.mean, entry.has_one_seed),
            "rank": Cell(str(entry.rank or ""), None if entry.rank is None else str(entry.rank)),
            "boards": f"{len(entry.counted)}/{count}",
            "origin": entry.origin,
            "unsupported": len(entry.unsupported) or "",
            "track": entry.track,
            "tuned": entry.tuned,
            "parameters": _parameters(entry),
            "state": _state(*entry.records.values()),
            "low": entry.mean.low if entry.mean else None,
            "high": entry.mean.high if entry.mean else None,
            **{
                _column(name): _score(score, entry.is_one_seed(name))
                for name, score in entry.scores.items()
            },
        }
        for entry in table.entries
    ]
    of_boards = (Column(_column(b.name), right=True, extra=True) for b in table.suite.boards)
    title = f"suite {table.suite.name} v{table.suite.version}"
    return Table((*_OVERALL, *of_boards), rows, title=title, notes=_notes(table))


def _notes(table: SuiteTable) -> list[str]:
    """Which means can be compared, and the boards that are in none."""
    notes = []
    if any(entry.mean for entry in table.entries):
        notes.append(
            "score: a board's is 0 at chance and 1 at its reference; in the mean, less than 0 "
            "counts as 0 and more than 1 as 1"
        )
    if any(entry.rank for entry in table.entries):
        notes += [
            "rank: models of a track are compared by their means over the boards that all of them "
            "have; a model is ahead of another only if their intervals do not overlap, lengthened "
            "to hold for all of them at once. Compare no other means",
            "no rank: a trained model lacks one of these boards, or its record on one has no rank "
            "there",
            "boards: how many the score is over, of those that count",
        ]
    if any(entry.mean is None for entry in table.entries):
        notes.append("no score: a model needs records on at least half of the boards that count")
    names = [board.name for board in table.suite.boards if board.name not in table.counted]
    if names:
        notes.append(f"not in the mean, since 1 is the best row: {', '.join(names)}")
    notes += [
        f"not in the mean until {board.reference} has a record, which is 1: {board.name}"
        for board in table.suite.boards
        if board.reference and table.scales[board.name].is_relative
    ]
    if any(entry.has_one_seed for entry in table.entries):
        notes += bounds_legend(ONE_SEED)
    return notes


def _column(board: str) -> str:
    """The name of a board's column; no board's name has a colon."""
    return f"board:{board}" if board in {column.name for column in _OVERALL} else board


def _metric_of(table: SuiteTable, board: SuiteBoard) -> str:
    """What the board ranks by, and in which direction it is better, as a record of it says."""
    for entry in table.entries:
        if (record := entry.records.get(board.name)) is not None:
            ranking = record.ranking
            better = "" if ranking.has_digits else f", {ranking.better} is better"
            return f" · {score_title(ranking, ranking.metric)}{better}"
    return ""


def _board_table(table: SuiteTable, board: SuiteBoard, title: str) -> Table:
    rows, name = [], ""
    for entry in table.entries:
        record = entry.records.get(board.name)
        if record is not None:
            name = level_name(record)
            value = level_of(record).value
            in_digits = has_digits_level(record)
            score = _score(entry.scores[board.name], entry.is_one_seed(board.name))
            rows.append({
                "model": entry.label,
                "score": score if score.text else Cell("unknown", None),
                "track": entry.track,
                "value": Cell(level(value, in_digits), value),
                "parameters": Cell(parameters(record), known_parameters(record)),
                "state": _state(record),
            })  # fmt: skip
    columns = (
        Column("model", fit="wrap"),
        Column("score", right=True),
        Column("value", right=True, importance=1, label=name),
        Column("track", importance=2),
        Column("parameters", right=True, importance=3),
        Column("state", right=True, importance=4, label=STATE),
    )
    return Table(columns, sorted(rows, key=_worst_last), title=title)


def _worst_last(row: Mapping[str, Any]) -> float:
    score = row["score"].value
    return math.inf if score is None else -score


def _score(score: Score | None, one_seed: bool) -> Cell:
    """The score with its interval, and the mark of a single seed; empty for None."""
    if score is None:
        return Cell("", None)
    text = fixed(score.value, 3)
    if score.low is not None and score.high is not None:
        text += f" ({fixed(score.low, 3)} … {fixed(score.high, 3)})"
    return Cell(f"{text} {ONE_SEED}" if one_seed else text, score.value)


def _state(*records: Record) -> Cell:
    """The bytes of a layer's state, of several records from the least to the most."""
    known = [size for record in records if (size := record.state_bytes) is not None]
    if not known:
        return Cell("", None)
    return Cell(_range((round(min(known)), round(max(known)))), max(known))


def _parameters(entry: SuiteRow) -> Cell:
    counts = entry.parameters
    return Cell("", None) if counts is None else Cell(_range(counts), counts[1])


def _range(counts: tuple[int, int]) -> str:
    low, high = counts
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
