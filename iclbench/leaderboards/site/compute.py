"""The plot of digits against training compute, with the name of a model at the end of its curve."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...api.costs import ValidationCurve
from ..curves import median_curve
from .end_labels import Point, label, label_heights
from .plots import COLORS, can_show
from .svg import Scale, power, scale_of, ticks

#: The most curves whose names have room.
MOST_CURVES = 10

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 340, 34, 208, 10, 133


@dataclass(frozen=True)
class CurveLine:
    """A curve with its name and the page that it leads to."""

    name: str
    page: str
    x: Sequence[float]
    y: Sequence[float | None]


def curves(lines: Sequence[CurveLine]) -> str:
    """The curves as SVG, on a logarithmic axis of operations, every one named at its end."""
    points = [(a, b) for line in lines for a, b in zip(line.x, line.y, strict=True)]
    xs = [a for a, b in points if _shown(a, b)]
    ys = [b for a, b in points if b is not None and _shown(a, b)]
    x_ends = (min(xs), max(xs)) if max(xs) > min(xs) else (min(xs) / 2, max(xs) * 2)
    y_ends = (min([0.0, *ys]), max([1.0, *ys]))
    x, y = scale_of(x_ends, True, LEFT, RIGHT), scale_of(y_ends, False, BOTTOM, TOP)
    drawn = [(line, i, ends) for i, line in enumerate(lines) if (ends := _points(line, x, y))]
    heights = label_heights([points[-1] for *_, points in drawn], RIGHT, TOP + 4, BOTTOM + 8)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {BOTTOM + 34}" role="group" '
        'aria-label="Digits against training compute">',
        *_axes(x_ends, y_ends, x, y),
        *(_curve(*curve, at) for curve, at in zip(drawn, heights, strict=True)),
        "</svg>",
    ]
    return "".join(parts)


def _axes(
    x_ends: tuple[float, float], y_ends: tuple[float, float], x: Scale, y: Scale
) -> Iterator[str]:
    for tick, text in ticks(*y_ends, False):
        yield f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{RIGHT}"/>'
        yield f'<text x="{LEFT - 5}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>'
    first, last = math.ceil(math.log10(x_ends[0])), math.floor(math.log10(x_ends[1]))
    for exponent in range(first, last + 1, max(1, math.ceil((last - first) / 4))):
        at = f"{x(10.0**exponent):.1f}"
        yield f'<path class="axis" d="M{at} {BOTTOM}v4"/>'
        yield f'<text x="{at}" y="{BOTTOM + 16}" text-anchor="middle">{power(exponent)}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>'
    middle = (LEFT + RIGHT) / 2
    yield (
        f'<text x="{middle}" y="{BOTTOM + 30}" text-anchor="middle">'
        "training operations per seed</text>"
    )


def _points(line: CurveLine, x: Scale, y: Scale) -> list[Point]:
    points = zip(line.x, line.y, strict=True)
    return [(x(a), y(b)) for a, b in points if b is not None and _shown(a, b)]


def _shown(operations: float, digits: float | None) -> bool:
    return can_show(operations, log=True) and can_show(digits, log=False)


def is_drawn(curve: ValidationCurve) -> bool:
    """Whether any point of a curve can be shown against its operations."""
    medians = median_curve(curve)
    return any(
        a is not None and _shown(a, b) for a, b in zip(curve.operations, medians, strict=True)
    )


def _curve(line: CurveLine, index: int, points: Sequence[Point], at: float) -> str:
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    end, color = points[-1], f"c{index % COLORS}"
    return (
        f'<a href="{line.page}" class="{color}"><path class="line" d="{path}"/>'
        f"{''.join(label(line.name, end, RIGHT, at))}</a>"
    )
