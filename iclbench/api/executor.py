"""Executor: runs the programs of a sweep, on this machine or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar


class Executor(ABC):
    """Runs independent jobs. Jobs and results are JSON values, so other machines can run them."""

    name: ClassVar[str]

    @abstractmethod
    def map(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> Iterator[tuple[int, Any]]:
        """Yield (index of the job, result) as jobs finish, running at most `workers` at once.

        The result of a job that failed is its exception. `function` is importable by name.
        """
