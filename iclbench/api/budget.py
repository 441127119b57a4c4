"""Budget: how long to train each seed, and how it is written: `30s`, `10m`, `2h`, `gpu-1h`."""

from __future__ import annotations

import re
from typing import NamedTuple

_FORM = re.compile(r"(gpu-)?(\d{1,9})([smh])", re.ASCII)
_UNITS = {"h": 3600, "m": 60, "s": 1}

#: Nobody trains a seed for longer than a week; who asks for it has mistaken the unit.
MOST_SECONDS = 7 * 24 * 3600


class Budget(NamedTuple):
    """Seconds of training per seed: core time on a CPU, or device time on a GPU."""

    seconds: int
    on_gpu: bool = False

    @classmethod
    def parse(cls, text: str) -> Budget:
        """The budget of a text; raises ValueError for one that is not a duration."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError("it must be a duration such as 30s, 10m, 2h or gpu-1h")
        seconds = int(match[2]) * _UNITS[match[3]]
        if not 1 <= seconds <= MOST_SECONDS:
            raise ValueError(f"it must be between 1s and {cls(MOST_SECONDS)} per seed")
        return cls(seconds, match[1] is not None)

    def __str__(self) -> str:
        """The shortest text, so that 60s and 1m are one budget."""
        unit = next(unit for unit, size in _UNITS.items() if self.seconds % size == 0)
        return f"{'gpu-' if self.on_gpu else ''}{self.seconds // _UNITS[unit]}{unit}"

    def times(self, count: int) -> Budget:
        """The budget of several seeds together."""
        return self._replace(seconds=self.seconds * count)

    @property
    def kind(self) -> str:
        """What is counted: core time or device time."""
        return "device time" if self.on_gpu else "core time"
