"""The file beside a record with what a model wrote and what a grader said of it, JSON lines."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

from .comparison import RELATIVE


def same_endings(recorded: bytes, written: bytes) -> tuple[int, int]:
    """The number of lines in the longer of two such files, and of those that say the same.

    A grader's raw answers may hold anything and are not compared; its scores are.
    """
    pairs = list(itertools.zip_longest(recorded.splitlines(), written.splitlines()))
    return len(pairs), sum(_same(*pair) for pair in pairs)


def _same(recorded: bytes | None, written: bytes | None) -> bool:
    if recorded is None or written is None:
        return False
    try:
        theirs = json.loads(recorded)
    except (ValueError, RecursionError):
        return False
    ours = json.loads(written)
    return (
        isinstance(theirs, dict)
        and theirs.keys() == ours.keys()
        and all(theirs[name] == ours[name] for name in ("beginning", "ending"))
        and isinstance(theirs["scores"], dict)
        and theirs["scores"].keys() == ours["scores"].keys()
        and all(_close(theirs["scores"][name], score) for name, score in ours["scores"].items())
    )


def _close(recorded: Any, written: float | None) -> bool:
    if written is None or not isinstance(recorded, int | float):
        return recorded is written
    try:
        return math.isclose(recorded, written, rel_tol=RELATIVE["float32"], abs_tol=1e-9)
    except OverflowError:
        return False
