"""Ticks of an axis: round values with their texts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from .minus import with_minus

#: The pixels of a character of a tick's text on a phone, where text is larger, and between texts.
CHARACTER, GAP = 7.5, 8

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def ticks(low: float, high: float, log: bool, integers: bool = False) -> list[tuple[float, str]]:
    """About six round values at most between the ends, with their text.

    Without a logarithm, `integers` leaves out all others.
    """
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        exponents = list(range(first, last + 1, step))
        if len(exponents) > 1:
            plain = exponents[0] >= -3 and exponents[-1] <= 5
            return [
                (10.0**e, _plain(10.0**e) if plain or e in {0, 1} else _raised(e))
                for e in exponents
            ]
        if low > 0 and high / low > 10:
            round_values = (m * 10.0**e for e in (first - 1, last) for m in (1, 2, 5))
            return _with_texts([v for v in round_values if low <= v <= high])
    size = 10 ** math.floor(math.log10((high - low) / 5))
    step_size = next(m * size for m in (1, 2, 5, 10) if (high - low) / (m * size) <= 6)
    if integers:
        # A step that divides the range ends at a tick.
        steps = [s for s in (1, 2, 4, 5) if (high - low) / s <= 6 and (high - low) % s == 0]
        step_size = steps[0] if steps else max(1, round(step_size))
    start = math.ceil(low / step_size - 1e-9)
    count = math.floor(high / step_size + 1e-9) - start + 1
    values = [(start + i) * step_size for i in range(count)]
    return _with_texts([v for v in values if not log or v > 0])


def spaced(
    labels: Sequence[tuple[float, str]], scale: Callable[[float], float]
) -> list[tuple[float, str]]:
    """The ticks of a horizontal axis whose texts do not touch: all, or every second, and so on."""
    shown = list(labels)
    while len(shown) > 1 and any(_touch(a, b, scale) for a, b in itertools.pairwise(shown)):
        shown = shown[::2]
    return shown


def _touch(
    one: tuple[float, str], other: tuple[float, str], scale: Callable[[float], float]
) -> bool:
    """Whether the texts of two ticks would be less than the gap apart."""
    room = abs(scale(other[0]) - scale(one[0]))
    return room < CHARACTER * (len(one[1]) + len(other[1])) / 2 + GAP


def _with_texts(values: Sequence[float]) -> list[tuple[float, str]]:
    """Round values as an axis writes them, all in one way: −0.5, 2,000, or 0, 5·10⁸, 10⁹."""
    sizes = [abs(v) for v in values if v != 0] or [1.0]
    if max(sizes) < 1e6 and min(sizes) >= 1e-4:
        return [(v, _plain(v)) for v in values]
    return [(v, "0" if v == 0 else _scientific(v)) for v in values]


def _plain(value: float) -> str:
    return with_minus(f"{value:,.6g}")


def _scientific(value: float) -> str:
    mantissa, _, exponent = f"{value:.5e}".partition("e")
    factor, raised = float(mantissa), _raised(int(exponent))
    return raised if factor == 1 else with_minus(f"{factor:g}·{raised}")


def _raised(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def power(exponent: int) -> str:
    """A power of ten as a text writes it: 0.01, 1,000, 10⁻⁸."""
    return f"{10.0**exponent:,g}" if abs(exponent) <= 3 else _raised(exponent)
