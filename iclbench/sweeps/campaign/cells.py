"""Cells: what a campaign consists of, and what is left of each, as folders of records tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ...api.budget import Budget
from ...api.errors import IclbenchError, UsageError
from ...api.suite import SuiteBoard
from ...api.tuning import TuningDocument
from ...console import counted
from ...files import RECORDS, STUDIES
from ...runs.plan import Plan
from ...runs.reuse import asking_too
from ...runs.settings import Settings
from ...runs.shifts import asked_shifts
from ...runs.store import RecordStore
from ...runs.suites import SuiteCell, find_suite
from ...runs.tuned import TUNINGS_FOLDER, agrees, choose_tuning, read_tunings, tuned
from ..files import read_sweep_file
from ..tuning.planning import planned_search, require_not_given
from ..tuning.trials import trial_budget
from .apart import SEEDS, seed_plan, seed_settings
from .boards import restricted, suite_cells
from .files import Campaign, Stage, SweepEntry
from .remaining import is_whole, plans_of, seconds_of, standing_in, trained_by_steps
from .work import MergeSeeds, RunSweep, TrainRun, TrainSeed, Work

#: The folder of the sweeps' records, in the output folder.
SWEEPS = "sweeps"

State = Literal["done", "to run", "waiting", "unsupported", "failed"]


@dataclass(frozen=True)
class CampaignCell:
    """A model on a board, or a sweep: its state, the work that it is, and what is left of it.

    It has no work where no plan can be made. It has failed where a record is damaged or a run of a
    sweep can't be planned; such a sweep has work as long as other runs have no record.
    """

    stage: str
    board: str
    model: str
    state: State
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
    """How many cells train for given steps, whose time `seconds_left` lacks; not of sweeps."""
    return sum(map(_has_fixed_steps, cells))


def _has_fixed_steps(cell: CampaignCell) -> bool:
    if cell.work is None:  # a winner that is not known yet has a budget, or else such steps
        return cell.state == "waiting" and not cell.seconds_left
    if not cell.to_run or not isinstance(cell.work, TrainRun | TrainSeed):
        return False
    adds_shifts = isinstance(cell.work, TrainRun) and cell.work.adds_shifts
    return not adds_shifts and trained_by_steps([cell.work.plan]) > 0


def seconds_left(cells: Iterable[CampaignCell]) -> float:
    """The seconds of core time, or device time, that the cells still take."""
    return sum(cell.seconds_left for cell in cells)


def cells_of(campaign: Campaign, settings: Settings) -> list[CampaignCell]:
    """All cells in the order of the stages, each once, with what is left of each."""
    progress = _Progress(campaign, settings)
    cells: dict[str, CampaignCell] = {}
    # A stage's winner may be a model that an earlier stage has too.
    repeated: list[CampaignCell] = []
    for stage in campaign.stage:
        of_stage = list(_cells_of_stage(stage, progress, repeated))
        repeated += of_stage
        for cell in of_stage:
            key = cell.name
            if cell.state == "unsupported":
                key = f"{stage.suite}: {cell.model} on {cell.board}: {cell.reason}"
            elif cell.plan is not None and not isinstance(cell.work, TrainSeed):
                key = cell.plan.spec.id
            first = cells.setdefault(key, cell)
            cells[key] = progress.under_shifts_of(first, cell)
    return list(cells.values())


def _cells_of_stage(
    stage: Stage, progress: _Progress, earlier: list[CampaignCell]
) -> Iterator[CampaignCell]:
    if stage.suite is None:
        yield from (progress.of_sweep(stage, entry) for entry in stage.sweep)
        return
    if stage.winner_of is None:
        yield from (progress.of(stage, board_cell) for board_cell in suite_cells(stage))
        return
    for board in restricted(find_suite(stage.suite), stage.boards).boards:
        on_board = [c for c in earlier if (c.stage, c.board) == (stage.winner_of, board.name)]
        plans = [cell.plan for cell in on_board if cell.plan and cell.plan.recipe is not None]
        yield from _winner(stage, board, plans, progress)


def _winner(
    stage: Stage, board: SuiteBoard, plans: list[Plan], progress: _Progress
) -> Iterator[CampaignCell]:
    """The model of these plans with the best tuning, with that tuning, once all are tuned."""
    winner = partial(CampaignCell, stage.name, board.name, f"the best of {stage.winner_of}")
    if not plans:
        yield winner("failed", reason=f"no model of {stage.winner_of} can be trained on it")
        return
    try:
        tunings = [tuning for plan in plans if (tuning := progress.tuning(plan)) is not None]
    except UsageError as error:
        yield winner("failed", reason=str(error))
        return
    if len(tunings) < len(plans):
        request = board.request("any", **stage.fields)
        budget = request.budget and Budget.parse(request.budget).times(len(request.seeds))
        missing = counted(len(plans) - len(tunings), "model")
        reason = f"{missing} of {stage.winner_of} not tuned"
        seconds = budget.seconds if budget else 0.0
        yield winner("waiting", reason=reason, seconds_left=seconds)
        return
    best = max(tunings, key=lambda tuning: tuning.ranking.goodness(tuning.best.score))
    alone = stage.model_copy(update={"models": (best.model,), "boards": (board.name,)})
    for board_cell in suite_cells(alone):
        if not board_cell.extra:
            cell = progress.of(stage, board_cell, best)
            adds_shifts = isinstance(cell.work, TrainRun) and cell.work.adds_shifts
            is_apart = stage.apart and cell.state == "to run" and not adds_shifts
            yield from progress.seeds_apart(cell) if is_apart else [cell]


class _Progress:
    """What the output folder and the published boards hold of the cells."""

    def __init__(self, campaign: Campaign, settings: Settings) -> None:
        self.campaign, self.settings = campaign, settings
        folders = [
            folder / TUNINGS_FOLDER for folder in (settings.out, campaign.published) if folder
        ]
        self.tunings = read_tunings([f for f in folders if any(f.glob("*.json"))])
        self.stores = [RecordStore(settings.out), *self.published(RECORDS)]

    def published(self, folder: str) -> list[RecordStore]:
        """The records of that folder of the published boards, if the campaign names them."""
        published = self.campaign.published
        return [] if published is None else [RecordStore(published / folder)]

    def of(
        self, stage: Stage, board_cell: SuiteCell, document: TuningDocument | None = None
    ) -> CampaignCell:
        """A model on a board, tuned by `document` or if it has been, with what is left of it."""
        cell = partial(CampaignCell, stage.name, board_cell.board.name, board_cell.model)
        plan, search, trials, search_key = board_cell.plan, None, 0, ""
        if plan is None:
            if board_cell.unsupported is not None:
                return cell("unsupported", reason=board_cell.unsupported)
            return cell("failed", reason=str(board_cell.error))
        try:
            asked_shifts(plan)
        except UsageError as error:
            return cell("failed", reason=str(error))
        if plan.recipe is not None and self.campaign.trials > 0:
            try:
                document = document or self.tuning(plan)
                if document is None:
                    search = self.campaign.search(board_cell.model)
                    require_not_given(plan, search)
                    planned = planned_search(plan, self.settings, search)
                    trials, search_key = planned.missing, planned.key
                else:
                    plan = tuned(plan, document)
            except UsageError as error:
                return cell("failed", reason=str(error))
        stands = standing_in(plan, self.stores)
        adds_shifts = search is None and stands.state == "incomplete"
        work = TrainRun(plan, search, trials, adds_shifts, search_key)
        if search is None and not stands.to_run:
            return cell("done" if stands.is_whole else "failed", work, stands.problem)
        seconds = 0.0 if adds_shifts else seconds_of(plan)
        if trials and plan.spec.budget is not None:
            seconds += trials * Budget.parse(trial_budget(plan.spec.budget)).seconds
        return cell("to run", work, seconds_left=seconds)

    def under_shifts_of(self, cell: CampaignCell, other: CampaignCell) -> CampaignCell:
        """The cell, which another stage has too, asked for the shifts of both."""
        if not isinstance(cell.work, TrainRun) or not isinstance(other.work, TrainRun):
            return cell
        plan, shifts = cell.work.plan, asked_shifts(other.work.plan)
        if {*shifts} <= {*asked_shifts(plan)}:
            return cell
        plan = asking_too(plan, shifts)
        lacks = cell.state == "done" and standing_in(plan, self.stores).to_run
        work = replace(cell.work, plan=plan, adds_shifts=cell.work.adds_shifts or lacks)
        return replace(cell, work=work, state="to run" if lacks else cell.state)

    def seeds_apart(self, cell: CampaignCell) -> Iterator[CampaignCell]:
        """A cell for each seed of a tuned run, and that of the record that merges them."""
        assert cell.plan is not None
        stores = [RecordStore(seed_settings(self.settings).out), *self.published(SEEDS)]
        missing = 0
        for seed in cell.plan.spec.seeds:
            plan, one = seed_plan(cell.plan, seed), f"{cell.model} seed {seed}"
            one_cell = replace(cell, model=one, work=TrainSeed(cell.plan, seed), seconds_left=0.0)
            stands = standing_in(plan, stores)
            missing += not stands.is_whole
            if stands.to_run:
                seconds = seconds_of(plan) if stands.is_missing else 0.0
                yield replace(one_cell, seconds_left=seconds)
            else:
                state: State = "done" if stands.is_whole else "failed"
                yield replace(one_cell, state=state, reason=stands.problem)
        merged = replace(cell, work=MergeSeeds(cell.plan), seconds_left=0.0)
        reason = f"{counted(missing, 'seed')} without a record"
        yield replace(merged, state="waiting", reason=reason) if missing else merged

    def tuning(self, plan: Plan) -> TuningDocument | None:
        """The tuning of this plan's budget with enough trials, if there is one.

        A small search space has fewer points than the campaign asks for; all of them are enough.
        """
        document = choose_tuning(plan, [t for t in self.tunings if t.budget == plan.spec.budget])
        if document is not None and not agrees(plan, document):
            return None
        if document is None or len(document.trials) >= self.campaign.trials:
            return document
        search = self.campaign.search(plan.spec.model)
        points = len(planned_search(plan, self.settings, search).trials)
        return document if len(document.trials) >= points else None

    def of_sweep(self, stage: Stage, entry: SweepEntry) -> CampaignCell:
        """The cell of a sweep. Grids that take weights of another count once those are there.

        A sweep is published whole or not at all: it runs in one folder. The cell has failed where
        no plan can be made for some runs; the others run all the same.
        """
        cell = partial(CampaignCell, stage.name, entry.out, entry.size)
        folder = self.settings.out / SWEEPS / entry.out
        store = RecordStore(folder)
        try:
            file = read_sweep_file(entry.file).sized(entry.size)
            if any(is_whole(file, s) for s in self.published(f"{STUDIES}/{entry.out}")):
                return cell("done")
            plans, waiting, failures = plans_of(file, store)
        except IclbenchError as error:
            return cell("failed", reason=str(error))
        standings = [standing_in(plan, [store]) for plan in plans]
        failures += [stands.problem for stands in standings if stands.problem]
        left = sum(stands.to_run for stands in standings) + waiting
        pairs = zip(plans, standings, strict=True)
        missing = [plan for plan, stands in pairs if stands.is_missing]
        # The hours are those of all runs that train by steps.
        by_steps = trained_by_steps(plans) + waiting
        share = (trained_by_steps(missing) + waiting) / by_steps if by_steps else 0.0
        seconds = 3600 * entry.hours * share + sum(seconds_of(plan) for plan in missing)
        work = RunSweep(entry, folder, left) if left else None
        if failures:
            return cell("failed", work, failures[0], seconds)
        return cell("to run" if work else "done", work, seconds_left=seconds)
