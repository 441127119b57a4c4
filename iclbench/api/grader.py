"""Grader: scores endings that a model generates, requested by `--grader NAME`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .config import Config
from .record import GraderReport


class Completion(NamedTuple):
    """The beginning of a text, given to the model, and the ending that it generated."""

    beginning: str
    ending: str


class Grader(ABC):
    """Scores completions.

    A `GradedTask` passes its completions to `EvaluationContext.grader` and turns every score into a
    metric `grade_NAME`: one value per prompt, NaN if grading failed.
    """

    required: ClassVar[tuple[str, ...]] = ("name",)
    #: What users type: lower-case words joined by hyphens.
    name: ClassVar[str]
    #: The arguments of `--grader-args`, a class derived from `Config`.
    Config: ClassVar[type[Config]] = Config
    #: Names in Config that affect no score, such as a timeout. They do not enter a run's id.
    operational: ClassVar[frozenset[str]] = frozenset()
    #: Whether grading costs money. If so, records are verified from their recorded answers.
    paid: ClassVar[bool] = False

    def __init__(self, config: Any) -> None:
        self.config = config

    @property
    def fractions(self) -> frozenset[str]:
        """The scores that are fractions, from 0 to 1. Intervals of their means stay within."""
        return frozenset()

    def prepare(self, completions: int, budget: float | None) -> None:
        """Prepare to grade about this many completions for at most `budget` USD.

        Called once per run, before training. Raises UsageError if something is missing, such as a
        key or a package.
        """
        return

    @abstractmethod
    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """Return the scores by name, one per completion in order, NaN if grading failed.

        A run calls this several times. Files in `folder` are kept for later runs. Raises RunError
        if grading can't continue, and UsageError if the budget does not suffice.
        """

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """Return the highest cost of grading these, in USD; None if prices are unknown."""
        return 0.0

    def raw(self, completion: Completion) -> dict[str, Any]:
        """Return what the record keeps of the answer about a completion: at most 64 KiB of JSON."""
        return {}

    def read(self, raw: dict[str, Any]) -> dict[str, float]:
        """Return the scores in an answer from `raw`, {} if it failed; for paid graders."""
        raise NotImplementedError

    def report(self) -> GraderReport:
        """Return the record's section about the grading: model, prompt, cost and failures."""
        return GraderReport(name=self.name)
