"""The names of lines, as short as a drawing has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

#: The characters of a name that have room at the end of a line.
LONGEST_NAME = 28


def shortened(names: Sequence[str]) -> list[str]:
    """The names for a drawing; the legend and tables have them whole.

    A long name loses its end, or its middle, up to a word, if another long one begins like it.
    """
    start = LONGEST_NAME // 2
    long = Counter(name[:start] for name in names if len(name) > LONGEST_NAME)

    def short(name: str) -> str:
        if len(name) <= LONGEST_NAME:
            return name
        end = name[start - LONGEST_NAME :].partition(" ")[2] if long[name[:start]] > 1 else ""
        return name[: LONGEST_NAME - 1 - len(end)].rstrip(" ,=\xa0") + f"…{end}"

    return [short(name) for name in names]
