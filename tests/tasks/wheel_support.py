"""The files of the wheel, without building it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


@cache
def wheel_files() -> frozenset[str]:
    """The paths inside the wheel of every file that it takes from this repository."""
    files = WheelBuilder(str(ROOT)).recurse_included_files()
    return frozenset(file.distribution_path for file in files)
