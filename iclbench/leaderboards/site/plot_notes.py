"""What the note below a figure says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...console import counted

Plot = dict[str, Any]

#: What lies between the bounds of a line. More bands than this would hide each other.
INTERVALS = "95% intervals, or the range over seeds where no interval is reliable"
SEEDS, MOST_BANDS = "range over seeds", 6


def note_of(lines: Sequence[Plot], spread: str, zeros: Sequence[str], left_out: int) -> str:
    """What bars and bands are, and which lines are missing.

    `spread` says what lies between low and high, `zeros` are the names of lines that are exactly 0
    on a logarithmic axis, and `left_out` counts those beyond the most that are drawn.
    """
    more = f"{counted(left_out, 'more line')} left out." if left_out else ""
    return " ".join(filter(None, [_bounds(lines, spread), _zero_note(zeros), more]))


def _bounds(lines: Sequence[Plot], spread: str) -> str:
    """What bars and bands are; many bands are only shown while a reader points at their line."""
    count = sum(bool(line.get("band")) for line in lines)
    if count > MOST_BANDS:
        return f"Point at a line or its name for its {spread}."
    if count:
        return f"Bands: {spread}."
    has_bars = any(v is not None for line in lines for v in line.get("low", ()))
    return f"Bars: {spread}." if has_bars else ""


def is_zero(line: Plot) -> bool:
    """Whether all values of a line are exactly 0, which no logarithmic axis shows."""
    values = [v for v in line["y"] if v is not None]
    return bool(values) and not any(values)


def _zero_note(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"Exactly 0 everywhere, and so not on this axis: {'; '.join(names)}."
