"""A line of a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...api.statistics import Curve


@dataclass(frozen=True)
class Line:
    """A line of a panel: its points, and how far its bars reach above and below them.

    Lines of one `group` have one color. A `floor` has no bars, nor has a `reference`, which shows a
    model without an x over the whole axis.
    """

    group: str
    name: str
    x: list[Any]
    y: list[float | None]
    mode: str = "lines"
    above: list[float | None] | None = None
    below: list[float | None] | None = None
    floor: bool = False
    reference: bool = False
    #: Bars are drawn thin, where there are many points.
    dense: bool = False


def bounds_of_means(curve: Curve) -> tuple[list[float | None], list[float | None]]:
    """How far the bounds of a curve's means are above and below them."""
    above: list[float | None] = []
    below: list[float | None] = []
    for mean, low, high in zip(curve.mean, curve.low, curve.high, strict=True):
        above.append(None if mean is None or high is None else high - mean)
        below.append(None if mean is None or low is None else mean - low)
    return above, below
