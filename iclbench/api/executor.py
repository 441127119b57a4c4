"""Executors: what runs the programs of a sweep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar


class Executor(ABC):
    """Runs independent jobs. Jobs and results are JSON values, so that they can go anywhere."""

    name: ClassVar[str]

    @abstractmethod
    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Iterator[tuple[int, Any]]:
        """(index of the job, result) as jobs finish; a job that died gives its exception.

        `function` can be imported by name; at most `workers` jobs run at once.
        """
