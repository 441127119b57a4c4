"""A suite's scores as tables: the mean of every model, and each board."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..api.record import Record
from ..api.suite import SuiteBoard
from ..leaderboards.formats import ONE_SEED, parameters
from ..leaderboards.level import level_name, level_of
from ..leaderboards.scale import Score
from ..leaderboards.sizes import known_parameters
from ..leaderboards.suite_score import SuiteRow, SuiteTable
from .records import bounds_legend
from .table import Cell, Column, Table

Reasons = Mapping[tuple[str, str], str]

#: What stands above the size of a layer's state after a prompt.
STATE = "bytes/layer"


_OVERALL = (
    Column("model", fit="shorten"),
    Column("score", right=True),
    Column("boards", right=True),
    Column("origin", importance=2),
    Column("track", importance=1),
    Column("tuned", importance=3),
    Column("parameters", right=True, importance=4),
    Column("state", right=True, importance=5, label=STATE),
    Column("low", right=True, extra=True),
    Column("high", right=True, extra=True),
)


def suite_parts(table: SuiteTable, reasons: Reasons | None = None) -> list[str | Table]:
    """Each entry's mean, then every board.

    `reasons` says why a model has no row on a board, by board and model.
    """
    parts: list[str | Table] = [f"suite {table.suite.name} v{table.suite.version}"]
    parts.append(overall_table(table))
    without = []
    for board in table.suite.boards:
        known = any(name == board.name for name, _ in reasons or {})
        if not known and not any(board.name in entry.records for entry in table.entries):
            without.append(board.name)
            continue
        scale = table.scales[board.name]
        unit = " digits" if scale.in_digits else ""
        ends = (
            f"0: {board.chance} ({_number(scale.chance)}{unit}), "
            f"1: {scale.reference_name} ({_number(scale.reference)}{unit})"
        )
        parts.append(_board_table(table, board, f"{board.name} · {ends}"))
        parts += [
            f"{model}: {why}"
            for (name, model), why in (reasons or {}).items()
            if name == board.name
        ]
    return [*parts, f"no records yet: {', '.join(without)}"] if without else parts


def overall_table(table: SuiteTable) -> Table:
    """One line per entry, with its mean over the boards, and its score on each where asked for."""
    count = len(table.suite.boards)
    rows = [
        {
            "model": entry.label,
            "score": _score(entry.mean, entry.has_one_seed),
            "boards": f"{sum(s is not None for s in entry.scores.values())}/{count}",
            "origin": entry.origin,
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
    notes = bounds_legend(ONE_SEED) if any(e.has_one_seed for e in table.entries) else ()
    return Table((*_OVERALL, *of_boards), rows, notes=notes)


def _column(board: str) -> str:
    """The name of a board's column; no board's name has a colon."""
    return f"board:{board}" if board in {column.name for column in _OVERALL} else board


def _board_table(table: SuiteTable, board: SuiteBoard, title: str) -> Table:
    rows = []
    for entry in table.entries:
        record = entry.records.get(board.name)
        if record is not None:
            value = level_of(record).value
            score = _score(entry.scores[board.name], entry.is_one_seed(board.name))
            rows.append({
                "model": entry.label,
                "score": score if score.text else Cell("unknown", None),
                "track": entry.track,
                "value": Cell(f"{level_name(record)} {_number(value)}", value),
                "parameters": Cell(parameters(record), known_parameters(record)),
                "state": _state(record),
            })  # fmt: skip
    columns = (
        Column("model", fit="shorten"),
        Column("score", right=True),
        Column("value", right=True, importance=1),
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
    text = _fixed(score.value)
    if score.low is not None and score.high is not None:
        text += f" ({_fixed(score.low)} … {_fixed(score.high)})"
    return Cell(f"{text} {ONE_SEED}" if one_seed else text, score.value)


def _fixed(value: float) -> str:
    # Adding 0 turns a rounded −0 into 0.
    return f"{round(value, 3) + 0.0:.3f}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


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
