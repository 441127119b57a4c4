"""Graders: what scores a story's ending, given its beginning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Completion(NamedTuple):
    """A text to be graded: how it begins, which is given, and how it goes on."""

    beginning: str
    ending: str


class Grader(ABC):
    """Scores completions."""

    @abstractmethod
    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """One score a completion by name, NaN where it failed; `folder` is for files."""
