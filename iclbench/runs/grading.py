"""Grading in a run: a grader's scores are checked and kept; a record's answers are read again."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.errors import RecordError, RunError
from ..api.grader import Completion, Grader
from ..api.names import visible
from ..api.record import GraderReport
from ..api.statistics import finite

_SCORE_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
#: What a line of the answers holds.
_LINE = {"beginning", "ending", "scores", "answer"}
#: The largest raw answer that a record keeps, in bytes of JSON.
LARGEST_ANSWER = 64 * 1024


class Grading(Grader):
    """A grader in one run: its scores are checked, and all answers are kept for the record."""

    name = "grading"

    def __init__(self, grader: Grader) -> None:
        super().__init__(grader.config)
        self.grader = grader
        self._lines: list[dict[str, Any]] = []

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """The grader's scores; raises RunError when they are not what `Grader.grade` promises."""
        scores = self.grader.grade(completions, folder)
        self._require_sound(scores, len(completions))
        for i, completion in enumerate(completions):
            self._lines.append(
                {
                    "beginning": completion.beginning,
                    "ending": completion.ending,
                    "scores": {name: finite(values[i]) for name, values in scores.items()},
                    "answer": self._raw(completion),
                }
            )
        return scores

    def _raw(self, completion: Completion) -> dict[str, Any]:
        raw = self.grader.raw(completion)
        try:
            size = len(json.dumps(raw, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            raise RunError(f"grader {self.grader.name}: a raw answer is not JSON") from None
        if size > LARGEST_ANSWER:
            raise RunError(f"grader {self.grader.name}: a raw answer has {size} bytes of JSON")
        return raw

    def _require_sound(self, scores: dict[str, list[float]], n: int) -> None:
        grader = f"grader {self.grader.name}"
        if not scores:
            raise RunError(f"{grader} gave no scores")
        for name, values in scores.items():
            if not _SCORE_NAME.fullmatch(name):
                raise RunError(f"{grader}: {name!r} is not a valid name of a score")
            if len(values) != n:
                raise RunError(f"{grader}: {len(values)} scores {name} for {n} completions")
            if any(math.isinf(value) for value in values):
                raise RunError(f"{grader}: {name} is infinite")

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """The grader's estimate."""
        return self.grader.estimate(completions)

    def answers(self) -> bytes:
        """JSON lines: each completion with its scores and the raw answer, in order."""
        lines = [json.dumps(line, allow_nan=False) for line in self._lines]
        return "".join(line + "\n" for line in lines).encode("ascii")

    def report(self) -> GraderReport:
        """The grader's report with the numbers of completions and failures."""
        counts = {"completions": len(self._lines), "failures": _failures(self._lines)}
        report = self.grader.report()
        # A service wrote these texts.
        model = None if report.model is None else visible(report.model, 500)
        reasons: Counter[str] = Counter()
        for text, count in report.reasons.items():
            reasons[visible(text, 500)] += count
        return report.model_copy(update={**counts, "model": model, "reasons": dict(reasons)})


class RecordedGrader(Grader):
    """A paid grader's recorded answers, read in the order in which they were given.

    `same` counts the completions that equal the recorded ones.
    """

    name = "recorded"

    def __init__(self, grader: Grader, answers: bytes) -> None:
        """`answers` come from `Grading.answers`; raises RecordError when they are damaged."""
        super().__init__(grader.config)
        self.grader = grader
        try:
            self._lines = [json.loads(line) for line in answers.decode("ascii").splitlines()]
            self._scores = [self._read(line) for line in self._lines]
            sound = all(map(self._is_sound, self._lines, self._scores))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise RecordError("the file of raw answers is damaged")
        self._next = 0
        self.same = 0

    def _is_sound(self, line: dict[str, Any], read: dict[str, float]) -> bool:
        """Whether a line holds a completion, and the scores of its answer that all lines hold."""
        names = line["scores"].keys()
        return (
            line.keys() == _LINE
            and isinstance(line["beginning"], str)
            and isinstance(line["ending"], str)
            and names == self._lines[0]["scores"].keys()
            and all(_SCORE_NAME.fullmatch(name) for name in names)
            and line["scores"] == {name: finite(score) for name, score in read.items()}
        )

    def _read(self, line: dict[str, Any]) -> dict[str, float]:
        scores = self.grader.read(line["answer"])
        return {name: scores.get(name, math.nan) for name in line["scores"]}

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """The scores of the next answers; raises RecordError when too few are left."""
        start, stop = self._next, self._next + len(completions)
        if stop > len(self._lines):
            raise RecordError("the file of raw answers has fewer answers than the run completions")
        for completion, line in zip(completions, self._lines[start:stop], strict=True):
            self.same += [*completion] == [line["beginning"], line["ending"]]
        rows = self._scores[start:stop]
        self._next = stop
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    @property
    def total(self) -> int:
        """The number of recorded answers."""
        return len(self._lines)

    @property
    def failures(self) -> int:
        """The number of recorded answers that lack a score."""
        return _failures(self._lines)


def _failures(lines: Sequence[dict[str, Any]]) -> int:
    return sum(None in line["scores"].values() for line in lines)
