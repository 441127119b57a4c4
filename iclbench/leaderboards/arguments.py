"""How arguments are written: as `k=v` pairs, and a value alone in a label."""

from __future__ import annotations

import json
from typing import Any

from ..api.names import visible

#: The most characters of a value in a label.
MOST_VALUE = 80


def argument_pairs(values: dict[str, Any]) -> str:
    """`k=v` pairs; leaves out what is null, and a task's seed of 0."""
    shown = {k: v for k, v in values.items() if v is not None and (k, v) != ("task_seed", 0)}
    return ", ".join(f"{k}={argument(v)}" for k, v in shown.items())


def in_label(value: Any) -> str:
    """An argument's value in a label: names joined by `+`, consecutive integers as a range."""
    if isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value):
        value = "+".join(value)
    return visible(argument(value), MOST_VALUE)


def argument(value: Any) -> str:
    """An argument's value; consecutive integers of a list as a range, such as 0-4."""
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
