"""Grader: scores the endings that a model writes, requested by `--grader NAME`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .config import Config
from .record import GraderReport


class Completion(NamedTuple):
    """The beginning of a text, given to the model, and the ending that the model wrote."""

    beginning: str
    ending: str


class Grader(ABC):
    """Scores completions.

    A gradable task passes its completions to `EvaluationContext.grader` and makes a metric
    `grade_NAME` of each score: one value per prompt, NaN where grading failed.
    """

    required: ClassVar[tuple[str, ...]] = ("name",)
    name: ClassVar[str]
    Config: ClassVar[type[Config]] = Config
    #: Names in Config that change no score, such as a timeout: they are not part of a run's id.
    operational: ClassVar[frozenset[str]] = frozenset()
    #: Whether grading costs money. If so, a record is verified from its recorded answers.
    paid: ClassVar[bool] = False

    def __init__(self, config: Any) -> None:
        self.config = config

    def prepare(self, completions: int, budget: float | None) -> None:
        """Get ready to grade about this many completions for at most `budget` USD.

        Called once in a run, before anything is trained. Raises UsageError for what is missing,
        such as a key or a package.
        """
        return

    @abstractmethod
    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """The scores by name, one per completion in order, NaN where grading failed.

        A run calls this several times. Files in `folder` are kept for later runs. Raises RunError
        when grading can't go on, and UsageError when the budget does not suffice.
        """

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """The most that grading these would cost, in USD; None if prices are unknown."""
        return 0.0

    def raw(self, completion: Completion) -> dict[str, Any]:
        """What the record keeps of the answer about a graded completion, as JSON."""
        return {}

    def read(self, raw: dict[str, Any]) -> dict[str, float]:
        """The scores in an answer from `raw`, {} for a failed one. Paid graders implement this."""
        raise NotImplementedError

    def report(self) -> GraderReport:
        """What the record says about the grading: the grader's model, prompt, cost, failures."""
        return GraderReport(name=self.name)
