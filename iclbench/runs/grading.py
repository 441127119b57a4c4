"""A grader at work in one run, and the answers of one from a record."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.errors import RecordError, RunError
from ..api.grader import Completion, Grader
from ..api.record import GraderReport
from ..api.statistics import finite

_SCORE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


class Grading(Grader):
    """A grader at work in one run: what it says is checked, and kept for the record."""

    name = "grading"

    def __init__(self, grader: Grader) -> None:
        super().__init__(grader.config)
        self.grader = grader
        self._lines: list[dict[str, Any]] = []

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """The grader's scores; raises RunError when they are not as `Grader.grade` promises."""
        found = self.grader.grade(completions, folder)
        self._require_sound(found, len(completions))
        for i, completion in enumerate(completions):
            self._lines.append(
                {
                    "beginning": completion.beginning,
                    "ending": completion.ending,
                    "scores": {name: finite(values[i]) for name, values in found.items()},
                    "answer": self.grader.raw(completion),
                }
            )
        return found

    def _require_sound(self, found: dict[str, list[float]], n: int) -> None:
        if not found:
            raise RunError(f"grader {self.grader.name} gave no scores")
        for name, values in found.items():
            if not _SCORE.fullmatch(name):
                raise RunError(f"grader {self.grader.name}: {name!r} is no name of a score")
            if len(values) != n:
                raise RunError(
                    f"grader {self.grader.name}: {len(values)} {name} of {n} completions"
                )
            if any(math.isinf(value) for value in values):
                raise RunError(f"grader {self.grader.name}: {name} is infinite")

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """The grader's."""
        return self.grader.estimate(completions)

    def answers(self) -> bytes:
        """JSON lines: each completion with its scores and the raw answer, in order."""
        lines = [json.dumps(line, allow_nan=False) for line in self._lines]
        return "".join(line + "\n" for line in lines).encode("ascii")

    def report(self) -> GraderReport:
        """The grader's, with the number of completions and failures."""
        failed = sum(None in line["scores"].values() for line in self._lines)
        counts = {"completions": len(self._lines), "failures": failed}
        return self.grader.report().model_copy(update=counts)


class RecordedGrader(Grader):
    """A paid grader's answers from a record, read again in the order in which they were asked."""

    name = "recorded"

    def __init__(self, grader: Grader, answers: bytes) -> None:
        """`answers` is what `Grading.answers` gave; raises RecordError when it is not."""
        super().__init__(grader.config)
        self.grader = grader
        try:
            self._lines = [json.loads(line) for line in answers.decode("ascii").splitlines()]
            self._rows = [(line["scores"], self._read(line)) for line in self._lines]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RecordError("the file of raw answers is damaged") from None
        self._next = 0
        #: How many completions were those that the record's grades are of.
        self.same = 0

    def _read(self, line: dict[str, Any]) -> dict[str, float]:
        scores = self.grader.read(line["answer"])
        return {name: scores.get(name, math.nan) for name in line["scores"]}

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """The scores of the answers that come next; raises RecordError when there are too few."""
        start, stop = self._next, self._next + len(completions)
        if stop > len(self._lines):
            raise RecordError("the file of raw answers has fewer than the run has completions")
        for completion, line in zip(completions, self._lines[start:stop], strict=True):
            self.same += [*completion] == [line["beginning"], line["ending"]]
        rows = [row for _, row in self._rows[start:stop]]
        self._next = stop
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    @property
    def total(self) -> int:
        """The number of recorded answers."""
        return len(self._lines)
