"""Tracker: passes the numbers of a run on to an experiment tracker, requested by `--tracker`."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from .config import Config
from .record import Record
from .spec import ResolvedSpec
from .statistics import Statistics

#: Settings of a run by flat names.
Settings = Mapping[str, str | int | float | bool]


class Tracker(ABC):
    """Follows one run, from `start` to `finish` or `fail`.

    Every run has an instance of its own, since several runs may be trained as one program. A
    tracker that raises is reported and dropped; the run goes on.
    """

    required: ClassVar[tuple[str, ...]] = ("name",)
    name: ClassVar[str]
    Config: ClassVar[type[Config]] = Config

    def __init__(self, config: Any, out: Path) -> None:
        """`out` is the folder of the records, for trackers that write files."""
        self.config, self.out = config, out

    @classmethod
    def prepare(cls, config: Any) -> None:
        """Called once, before any run; raises UsageError if something is missing.

        Such as a package: the base class imports none.
        """
        return

    @abstractmethod
    def start(self, spec: ResolvedSpec, settings: Settings) -> None:
        """A run starts; `settings` is its spec with flat names, such as `model_args.layers`."""

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """The finite losses after `step` of the training: `loss/mean` and `loss/seed-N`.

        Called at a hundred points of a training, and at least every ten seconds in between.
        """

    @abstractmethod
    def finish(self, record: Record, summary: Mapping[str, float]) -> None:
        """The record has been written; `summary` is its finite numbers with flat names."""

    def fail(self, error: BaseException) -> None:
        """The run ended without a record."""
        return


def settings_of(spec: ResolvedSpec) -> dict[str, str | int | float | bool]:
    """The settings of a run by flat names; lists as JSON, without what is null."""
    return dict(_flat("", spec.model_dump(mode="json")))


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", value)
        elif value is not None:
            plain = isinstance(value, str | int | float)
            yield f"{prefix}{name}", value if plain else json.dumps(value)


def losses_of(spec: ResolvedSpec, loss: Sequence[float]) -> dict[str, float]:
    """The finite losses of a training step, `loss/seed-N`, and their mean, `loss/mean`."""
    pairs = zip(spec.seeds, loss, strict=True)
    finite = {f"loss/seed-{seed}": value for seed, value in pairs if math.isfinite(value)}
    if not finite:
        return {}
    return {"loss/mean": sum(finite.values()) / len(finite), **finite}


def summary_of(record: Record) -> dict[str, float]:
    """The finite numbers of a record by flat names, those of its floor below `floor/`."""
    numbers: dict[str, float | None] = {
        "score": record.score,
        "parameters": record.parameters,
        "diverged": sum(seed.diverged_at is not None for seed in record.seeds),
        "evaluation_seconds": record.main.seconds,
    }
    if record.training is not None:
        numbers["training_seconds"] = record.training.seconds
        numbers["steps"] = record.training.steps
    numbers.update(_statistics("", record.metrics))
    numbers.update(_statistics("floor/", record.floor))
    return {k: float(v) for k, v in numbers.items() if v is not None}


def _statistics(
    prefix: str, metrics: Mapping[str, Statistics]
) -> Iterator[tuple[str, float | None]]:
    for name, statistics in metrics.items():
        yield f"{prefix}{name}/mean", statistics.mean
        yield f"{prefix}{name}/median", statistics.median
        if statistics.digits is not None:
            yield f"{prefix}{name}/digits", statistics.digits.mean
