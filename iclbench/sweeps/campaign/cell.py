"""A cell of a campaign: a model on a board or a sweep, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ...runs.plan import Plan
from .remaining import seconds_of_trials, trained_by_steps
from .work import RunSweep, TrainRun, TrainSeed, Work

CellState = Literal["done", "to run", "waiting", "unsupported", "failed"]


@dataclass(frozen=True)
class CampaignCell:
    """A model on a board, or a sweep: its state, the work that it is, and what is left of it.

    It has no work where no plan can be made. It has failed where a record is damaged or a run of a
    sweep can't be planned; such a sweep has work as long as other runs have no record.
    """

    stage: str
    board: str
    model: str
    state: CellState
    work: Work | None = None
    #: Why it waits, is unsupported or has failed.
    reason: str = ""
    #: The seconds of the budget that its trials and its training still take.
    seconds_left: float = 0.0

    @property
    def name(self) -> str:
        """The cell as people read it."""
        return f"{self.stage}: {self.model} on {self.board}"

    @property
    def plan(self) -> Plan | None:
        """The run, tuned if it has been; None for a sweep."""
        return None if self.work is None or isinstance(self.work, RunSweep) else self.work.plan

    @property
    def to_run(self) -> bool:
        """Whether the cell needs a process."""
        has_others = self.state == "failed" and isinstance(self.work, RunSweep)
        return self.state == "to run" or has_others


def count_fixed_steps(cells: Iterable[CampaignCell]) -> int:
    """How many cells train for given steps, whose time `seconds_left` lacks.

    A sweep counts if its file gives no hours.
    """
    return sum(map(_has_fixed_steps, cells))


def _has_fixed_steps(cell: CampaignCell) -> bool:
    if cell.work is None:  # a winner that is not known yet has a budget, or else such steps
        return cell.state == "waiting" and not cell.seconds_left
    if cell.to_run and isinstance(cell.work, RunSweep):
        return cell.work.has_steps and not cell.work.entry.hours
    if not cell.to_run or not isinstance(cell.work, TrainRun | TrainSeed):
        return False
    adds_shifts = isinstance(cell.work, TrainRun) and cell.work.adds_shifts
    return not adds_shifts and trained_by_steps([cell.work.plan]) > 0


def seconds_left(cells: Iterable[CampaignCell]) -> float:
    """The seconds of core time, or device time, that the cells still take.

    Trials that cells share are run once.
    """
    total, searches = 0.0, set[str]()
    for cell in cells:
        total += cell.seconds_left
        if isinstance(cell.work, TrainRun) and cell.work.search_key:
            total -= seconds_of_trials(cell.work) if cell.work.search_key in searches else 0.0
            searches.add(cell.work.search_key)
    return total
