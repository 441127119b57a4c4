"""Marks of points: a shape for each of the dashes, so that color alone tells no two apart.

None of them has a meaning in the legend of origins, where ○ is untuned and ▲ a solver.
"""

from __future__ import annotations

#: Outlines from the middle of a mark: a plus, a triangle that points down, and a cross.
_PATHS = {
    "dashed": "m-1.3-4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z",
    "dashdot": "m-4.3-3.2h8.6l-4.3 7.4z",
    "long": "m0-1.7 2.2-2.2 1.7 1.7-2.2 2.2 2.2 2.2-1.7 1.7-2.2-2.2-2.2 2.2-1.7-1.7 2.2-2.2-2.2-2.2"
    " 1.7-1.7z",
}


def mark(style: str, dash: str, x: float, y: float) -> str:
    """The mark of a point, with the classes of its line."""
    if dash in _PATHS:
        return f'<path class="dot {style}" d="M{x:.1f} {y:.1f}{_PATHS[dash]}"/>'
    return f'<circle class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
