"""A line of a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    in_legend: bool = True
    #: Bars are drawn thin, where there are many points.
    dense: bool = False
