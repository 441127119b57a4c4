"""How numbers and facts of a record are written, on every page alike."""

from __future__ import annotations

import json
import math
from typing import Any

from ..api.record import Record
from .comparison import Difference

#: The marks of where weights are from.
MARKS = {"trained": "●", "constructed": "◆", "solver": "▲", "loaded": "■"}

LEGEND = " · ".join(f"{mark} {name}" for name, mark in MARKS.items())


def number(value: float | None, scale: str = "log") -> str:
    """An error in scientific notation, or a metric on a linear scale."""
    if value is None or not math.isfinite(value):
        return "not finite"
    return f"{value:.2e}" if scale == "log" else f"{value:.4g}"


def digits_text(value: float | None) -> str:
    """Digits with one decimal; none is left empty, and an error of 0 has no end of them."""
    if value is None:
        return ""
    return "∞" if math.isinf(value) else f"{value:.1f}"


def interval(low: float | None, high: float | None, scale: str = "log") -> str:
    """Both bounds."""
    return f"{number(low, scale)} … {number(high, scale)}"


def difference_text(found: Difference | None, scale: str) -> str:
    """A paired difference with its interval, `*` where 0 lies outside; digits gained for errors."""
    if found is None:
        return ""
    mean, low, high = found
    if scale == "log":
        mean, low, high = -found.mean, -found.high, -found.low
    # Adding 0 turns a rounded −0 into 0.
    shown = [f"{round(v, 2) + 0.0:+.2f}" if scale == "log" else f"{v:+.3g}"
             for v in (mean, low, high)]  # fmt: skip
    beyond = found.first_is_lower or found.first_is_higher
    return f"{shown[0]} [{shown[1]}, {shown[2]}]{' *' if beyond else ''}"


def origin(record: Record) -> str:
    """Where the weights are from, with its mark and how many seeds diverged."""
    spec = record.spec
    diverged = sum(seed.diverged_at is not None for seed in record.seeds)
    what = f": {spec.weights}" if spec.origin == "constructed" else ""
    start = f", from {_name(spec.init)}" if spec.init else ""
    lost = f", {diverged} diverged" if diverged else ""
    return f"{MARKS[spec.origin]} {spec.origin}{what}{start}{lost}"


def _name(weights: str) -> str:
    return weights.rsplit("/", maxsplit=1)[-1]


def budget(record: Record) -> str:
    """What training took: steps × prompts a step."""
    report = record.training
    return f"{report.steps:,} × {report.batch:,}" if report else ""


def seconds(record: Record) -> str:
    """Time of training, or of the evaluation where nothing is trained."""
    found = record.training.seconds if record.training else record.evaluation.seconds
    return f"{found:.1f} s"


def device(record: Record) -> str:
    """The device as the record names it."""
    found = record.environment
    return f"{found.device} ({found.threads} threads)" if found.device == "cpu" else found.device


def arguments(values: dict[str, Any], without: frozenset[str] = frozenset({"task_seed"})) -> str:
    """`k=v` pairs; a task's seed is left out at 0, and so is what is null."""
    shown = {
        k: v for k, v in values.items() if v is not None and not (k in without and v == 0)
    }  # fmt: skip
    return ", ".join(f"{k}={_value(v)}" for k, v in shown.items())


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return _ranges(list(value)) if value else "()"
    return value if isinstance(value, str) else json.dumps(value)


def _ranges(values: list[Any]) -> str:
    """Whole numbers as 2-9,16; anything else one by one."""
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return json.dumps(values)
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
