"""Progress of a long grading."""

from __future__ import annotations

import time

from iclbench import report

SECONDS = 15.0


class Progress:
    """Print a line on standard error every fifteen seconds."""

    def __init__(self, grader: str, total: int) -> None:
        self._grader, self._total = grader, total
        self._last = time.monotonic()
        self.done = 0

    def step(self) -> None:
        """Count one graded ending."""
        self.done += 1
        if time.monotonic() - self._last > SECONDS:
            self._last = time.monotonic()
            report(f"grader {self._grader}: {self.done} of {self._total} endings")
