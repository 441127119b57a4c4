"""Work: what running a cell does, a type per kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...runs.plan import Plan
from ..tuning.settings import SearchSettings
from .files import SweepEntry


@dataclass(frozen=True)
class TrainRun:
    """A run; with `search`, it is tuned first, which takes `trials` that have no record yet.

    Searches with the same `search_key` share trials and can't run at the same time.

    If it `adds_shifts`, it has a record, to which evaluations under shifts are added.
    """

    plan: Plan
    search: SearchSettings | None = None
    trials: int = 0
    adds_shifts: bool = False
    search_key: str = ""


@dataclass(frozen=True)
class TrainSeed:
    """One seed of a run, which gets a record of its own."""

    plan: Plan
    seed: int


@dataclass(frozen=True)
class MergeSeeds:
    """The record of a run whose seeds were trained apart."""

    plan: Plan


@dataclass(frozen=True)
class RunSweep:
    """A sweep into `folder`, of which so many `runs` have no record yet.

    Some of them train for given steps if it `has_steps`.
    """

    entry: SweepEntry
    folder: Path
    runs: int
    has_steps: bool = False


Work = TrainRun | TrainSeed | MergeSeeds | RunSweep
