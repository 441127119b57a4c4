"""How numbers and facts are written, alike in every table and on every page."""

from __future__ import annotations

import json
import math
from typing import Any

from ..api.record import Ranking
from .ranking import Difference
from .row import Floor, Row, has_digits

#: The marks of the origins of weights.
MARKS = {"trained": "●", "constructed": "◆", "solver": "▲", "loaded": "■"}

LEGEND = " · ".join(f"{mark} {name}" for name, mark in MARKS.items())

#: What stands for a number that is not finite.
NOT_FINITE = "not finite"


def number(value: float | None, scale: str = "log") -> str:
    """An error in scientific notation, or on a linear scale a metric with four figures."""
    if value is None or not math.isfinite(value):
        return NOT_FINITE
    return f"{value:.2e}" if scale == "log" else f"{value:.4g}"


def digits(value: float | None) -> str:
    """Digits with one decimal; empty for None, and ∞ for an error of 0."""
    if value is None:
        return ""
    return "∞" if math.isinf(value) else f"{value:.1f}"


def score(line: Row | Floor, ranking: Ranking) -> str:
    """What ranks, in short: the digits of an error, or the score."""
    if has_digits(ranking):
        return digits(line.digits) or NOT_FINITE
    return number(line.score, ranking.scale)


def missing_digits(value: float | None) -> str:
    """Digits fewer than the floor's, as a negative number; empty for None."""
    return "" if value is None else f"−{value:.1f}"


def interval(low: float | None, high: float | None, scale: str = "log") -> str:
    """Both bounds."""
    return f"{number(low, scale)} … {number(high, scale)}"


def difference(paired: Difference | None, scale: str) -> str:
    """A paired difference with its interval, `*` if it excludes 0; digits gained for errors."""
    if paired is None:
        return ""
    # Adding 0 turns a rounded −0 into 0.
    mean, low, high = (
        f"{round(v, 2) + 0.0:+.2f}" if scale == "log" else f"{v:+.3g}" for v in paired[:3]
    )
    return f"{mean} [{low}, {high}]{' *' if paired.is_significant else ''}"


def rank(row: Row) -> str:
    """The rank, `3–5` for an interval; empty for a row that is not ranked."""
    return "" if row.rank is None else str(row.rank)


def origin(row: Row) -> str:
    """The origin of the weights with its mark, and how many seeds diverged."""
    construction = f": {row.construction}" if row.construction is not None else ""
    start = f", from {row.init.rsplit('/', maxsplit=1)[-1]}" if row.init else ""
    return f"{MARKS[row.origin]} {row.origin}{construction}{start}{diverged(row)}"


def diverged(row: Row) -> str:
    """How many seeds diverged, after a comma; empty for none."""
    return f", {row.diverged} diverged" if row.diverged else ""


def spread(row: Row) -> str:
    """The lowest and highest score of the seeds; empty for fewer than two."""
    if len(row.seed_scores) < 2:
        return ""
    scores = [math.inf if score is None else score for score in row.seed_scores]
    return f"{min(scores):.1e} … {max(scores):.1e}"


def budget(steps: int | None, batch: int | None) -> str:
    """Training steps × prompts per step; empty if nothing was trained."""
    return "" if steps is None or batch is None else f"{steps:,} × {batch:,}"


def seconds(value: float) -> str:
    """Seconds with one decimal."""
    return f"{value:.1f} s"


def device(name: str, threads: int) -> str:
    """The device; for a CPU with its number of threads."""
    return f"{name} ({threads} threads)" if name == "cpu" else name


def arguments(values: dict[str, Any], without: frozenset[str] = frozenset({"task_seed"})) -> str:
    """`k=v` pairs; leaves out what is null, and the names in `without` at 0."""
    shown = {k: v for k, v in values.items() if v is not None and not (k in without and v == 0)}
    return ", ".join(f"{k}={_value(v)}" for k, v in shown.items())


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _integer_ranges(list(value)) if value else "()"
    return value if isinstance(value, str) else json.dumps(value)


def _integer_ranges(values: list[Any]) -> str:
    """Integers as 2-9,16; anything else as JSON."""
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return json.dumps(values)
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
