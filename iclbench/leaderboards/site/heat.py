"""Matrices as heat maps in SVG: the maps of an analysis, whose content may be anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from ...api.names import is_finite_number
from ...api.record import Record
from ..figures.maps import color_ranges, group_of, maps_in, shown_labels
from .figure import View
from .minus import with_minus

#: Shades on either side of 0; the classes of the style sheet are h-8 … h8.
SHADES = 8
#: Maps up to this size are also shown as numbers.
MOST_NUMBERS = 200


def shared_maps(records: Sequence[Record], metric: str) -> list[list[View]]:
    """The drawn maps of each record; those of one group share a scale over all of the records."""
    by_record = [maps_in(record, metric) for record in records]
    views = iter(draw_maps([one for maps in by_record for one in maps]))
    return [[next(views) for _ in maps] for maps in by_record]


def draw_maps(maps: Sequence[dict[str, Any]]) -> list[View]:
    """Views of maps; those of one `group` share a color scale.

    It is symmetric about 0 if any value is negative.
    A map with `y` is drawn upwards, as a plane; others have their first row at the top.
    """
    ranges = color_ranges(list(maps))
    return [_view(one, ranges[group_of(one)]) for one in maps]


def _view(content: dict[str, Any], ends: tuple[float, float]) -> View:
    name = str(content["name"])
    rows: list[list[float | None]] = content["values"]
    upward = rows[::-1] if "y" in content else rows
    cells = len(rows) * len(rows[0])
    svg = _svg(name, upward, content, ends)
    return {
        "name": name,
        "svg": svg,
        "low": f"{ends[0]:.3g}",
        "high": f"{ends[1]:.3g}",
        "signed": ends[0] < 0,
        "has_axes": 'class="side ' in svg,
        "numbers": [[_text(v) for v in row] for row in rows] if cells <= MOST_NUMBERS else None,
    }


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _svg(
    name: str, rows: list[list[float | None]], content: dict[str, Any], ends: tuple[float, float]
) -> str:
    """One path per shade, of runs of equal cells, so that a plane of points stays small."""
    height, width = len(rows), len(rows[0])
    runs: dict[int, list[str]] = {}
    for y, row in enumerate(rows):
        for x, length, shade in _runs([_shade(value, ends) for value in row]):
            runs.setdefault(shade, []).append(f"M{x} {y}h{length}v1h-{length}z")
    paths = [f'<path class="h{shade}" d="{"".join(d)}"/>' for shade, d in sorted(runs.items())]
    points = "".join(_points(content, width, height))
    return (
        f'<svg class="heatmap" viewBox="0 0 {width} {height}" preserveAspectRatio="none" '
        f'shape-rendering="crispEdges" role="img" aria-label="{escape(name)}">'
        f"{''.join(paths)}</svg>{points}"
    )


def _shade(value: float | None, ends: tuple[float, float]) -> int | None:
    low, high = ends
    if value is None:
        return None
    if low < 0:
        return round(SHADES * min(max(value / high, -1.0), 1.0)) if high > 0 else 0
    part = (value - low) / (high - low) if high > low else 0.0
    return round(SHADES * min(max(part, 0.0), 1.0))


def _runs(shades: list[int | None]) -> Iterator[tuple[int, int, int]]:
    """(start, length, shade) of equal neighbours; cells without a value are left out."""
    start = 0
    for at in range(1, len(shades) + 1):
        if at == len(shades) or shades[at] != shades[start]:
            shade = shades[start]
            if shade is not None:
                yield start, at - start, shade
            start = at


def _points(content: dict[str, Any], width: int, height: int) -> Iterator[str]:
    """The axes and the labelled points on top of a plane, in percent of its sides."""
    points: Any = content.get("points")
    xs: Any = content.get("x")
    ys: Any = content.get("y")
    if not isinstance(points, dict) or not (_are_numbers(xs, width) and _are_numbers(ys, height)):
        return
    yield from _zero_lines(xs, ys)
    yield from _sides(xs, ys)
    columns: list[Any] = [points.get(key) for key in ("x", "y", "text")]
    if not all(isinstance(column, list) for column in columns):
        return
    shown_texts = shown_labels(str(content["name"]), columns[2])
    for x, y, text, shown_text in zip(*columns, shown_texts, strict=False):
        if not (is_finite_number(x) and is_finite_number(y) and isinstance(text, str | int)):
            continue
        left, bottom = (_percent(v, axis) for v, axis in ((x, xs), (y, ys)))
        if 0 <= left <= 100 and 0 <= bottom <= 100:
            label, shown = escape(str(text)[:8]), escape(shown_text[:8])
            # A label at an edge is moved inside.
            half = f"{0.35 * len(shown) + 0.1:.2f}em"
            place = (
                f"left:clamp({half}, {left:.1f}%, 100% - {half});"
                f"bottom:clamp(.6em, {bottom:.1f}%, 100% - .6em)"
            )
            yield f'<b class="point" style="{place}" title="{label}">{shown}</b>'


def _sides(xs: list[float], ys: list[float]) -> Iterator[str]:
    """The values at the outer edges of a plane, beside it."""
    for name, axis in (("x", xs), ("y", ys)):
        half = (axis[-1] - axis[0]) / max(len(axis) - 1, 1) / 2
        for side, value in (("first", axis[0] - half), ("last", axis[-1] + half)):
            text = with_minus(f"{value:.3g}")
            yield f'<i class="side {name} {side}">{text}</i>'


def _zero_lines(xs: list[float], ys: list[float]) -> Iterator[str]:
    """The lines x = 0 and y = 0 of a plane, where they lie inside."""
    for name, side, axis in (("x", "left", xs), ("y", "bottom", ys)):
        at = _percent(0.0, axis)
        if 0 < at < 100:
            yield f'<i class="zero {name}" style="{side}:{at:.1f}%"></i>'


def _are_numbers(values: Any, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(map(is_finite_number, values))


def _percent(value: float, axis: list[float]) -> float:
    """Where a value lies between the outer edges of an axis's first and last cell."""
    if len(axis) < 2 or axis[0] == axis[-1]:
        return 50.0
    part = (value - axis[0]) / (axis[-1] - axis[0])
    return 100 * (part * (len(axis) - 1) + 0.5) / len(axis)
