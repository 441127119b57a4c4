"""Grader: scores the endings that a model writes, asked for by `--grader NAME`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from .config import Config
from .record import GraderReport


class Completion(NamedTuple):
    """The beginning of a text, which the model was given, and the ending that it wrote."""

    beginning: str
    ending: str


class Grader(ABC):
    """Scores of completions. A task that has some gives them to `EvaluationContext.grader`, and
    makes a metric `grade_NAME` of each score: one value a prompt, NaN where grading failed.
    """

    required: ClassVar[tuple[str, ...]] = ("name",)
    name: ClassVar[str]
    Config: ClassVar[type[Config]] = Config
    #: Names in Config that change no score, such as a timeout: they are not part of a run's id.
    operational: ClassVar[frozenset[str]] = frozenset()
    #: Whether asking costs money: then a record is verified from the answers that it kept.
    paid: ClassVar[bool] = False

    def __init__(self, config: Any) -> None:
        self.config = config

    def prepare(self, completions: int, budget: float | None) -> None:
        """Called before anything is trained: about so many completions will come, and at most
        `budget` USD may be spent on them.

        Raises UsageError for what is missing, such as a key or a package.
        """
        return

    @abstractmethod
    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """Scores by name, one a completion in order, NaN where it failed.

        A run calls this several times. `folder` is for what may be kept for later runs. Raises
        RunError where it makes no sense to go on; UsageError where the budget does not suffice.
        """

    def estimate(self, completions: Sequence[Completion]) -> float | None:
        """USD that grading these would cost, at most; None where prices are not known."""
        return 0.0

    def raw(self, completion: Completion) -> dict[str, Any]:
        """What is to be kept of the answer about a completion that was graded, as JSON."""
        return {}

    def read(self, raw: dict[str, Any]) -> dict[str, float]:
        """The scores in an answer that `raw` gave, {} for a failed one; a paid grader has this."""
        raise NotImplementedError

    def report(self) -> GraderReport:
        """What the record names: the model that graded, its prompt's hash, cost, failures."""
        return GraderReport(name=self.name)
