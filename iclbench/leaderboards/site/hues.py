"""Hues: the numbers that stand for a line's color and dashes, the same for a model on all pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..board import Board
from ..descriptions import Descriptions

#: Colors of the style sheet.
COLORS = 10
#: The dashes of lines; a dotted line is one of reference. Points have a mark for each, see `marks`.
DASHES = ("solid", "dashed", "dashdot", "long")
#: As many lines can be told apart.
MOST_HUES = COLORS * len(DASHES)


def style(hue: int) -> dict[str, object]:
    """The color and the dashes of a hue."""
    return {"color": hue % COLORS, "dash": DASHES[hue // COLORS % len(DASHES)]}


def trained_models(boards: Iterable[Board]) -> list[str]:
    """The models that have trained rows, in the order of their names."""
    rows = (row for board in boards for row in board.rows)
    return sorted({row.record.spec.model for row in rows if row.is_trained})


def hues_of(models: Sequence[str], about: Descriptions) -> list[int]:
    """The hue of each line of a figure: its model's, and another one of the color if that is taken.

    Where a model has more lines than there are dashes, or all of them, hues go by order.
    """
    counts = Counter(models)
    if max(counts.values(), default=0) > (len(DASHES) if len(counts) > 1 else 1):
        return list(range(len(models)))
    hues: dict[int, int] = {}
    # The first line of each model has the model's own hue.
    firsts = {model: i for i, model in reversed(list(enumerate(models)))}
    for i in (*firsts.values(), *(i for i in range(len(models)) if i not in firsts.values())):
        own = about.hue(models[i]) % MOST_HUES
        of_color = [*range(own, MOST_HUES, COLORS), *range(own % COLORS, own, COLORS)]
        free = (hue for hue in (*of_color, *range(MOST_HUES)) if hue not in hues.values())
        hues[i] = next(free, own)
    return [hues[i] for i in range(len(models))]
