"""How to search for a model's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...api.errors import UsageError
from .trials import TRIALS


@dataclass(frozen=True)
class SearchSettings:
    """How to search: the number of trials, the seeds of each, changes to the space, and workers.

    Raises UsageError for numbers that no search can use.
    """

    trials: int = TRIALS
    tuning_seeds: int = 1
    search_seed: int = 0
    space: Mapping[str, Any] = field(default_factory=dict)
    workers: int | None = None
    executor: str = "local"
    executor_args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        least = {"trials": 1, "tuning_seeds": 1, "search_seed": 0, "workers": 1}
        for name, value in least.items():
            given = getattr(self, name)
            if given is not None and (not isinstance(given, int) or given < value):
                raise UsageError(f"{name}={given!r} is no whole number of {value} or more")
        if not isinstance(self.space, Mapping):
            raise UsageError(f"space={self.space!r} must map fields of the search space to values")
