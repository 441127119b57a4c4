"""What the output folder and the published boards hold of a campaign's cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...api.errors import IclbenchError, RecordError, UsageError
from ...api.tuning import TuningDocument
from ...console import Reporter, counted
from ...devices import find_device
from ...files import RECORDS, STUDIES
from ...runs.budget import require_device
from ...runs.plan import Plan
from ...runs.reuse import asking_too
from ...runs.settings import Settings
from ...runs.shifts import asked_shifts
from ...runs.store import RecordStore
from ...runs.suites import SuiteCell
from ...runs.tuned import (
    TUNINGS_FOLDER,
    agrees,
    choose_tuning,
    imposed_arguments,
    read_tuning,
    tuned,
)
from ..files import read_sweep_file
from ..tuning.planning import planned_search, points_in
from .apart import SEEDS, seed_plan, seed_settings
from .cell import CampaignCell, CellState
from .files import Campaign, CampaignStage, SweepEntry
from .remaining import (
    is_whole,
    plans_of,
    seconds_of,
    seconds_of_trials,
    share_left,
    standing_in,
    trained_by_steps,
)
from .work import MergeSeeds, RunSweep, TrainRun, TrainSeed

#: The folder of the sweeps' records, in the output folder.
SWEEPS = "sweeps"


def _sound_tunings(folders: Iterable[Path], report: Reporter) -> Iterator[TuningDocument]:
    """The tunings in these folders; a line says which file is not one."""
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        try:
            yield read_tuning(path)
        except RecordError as error:
            report(f"left out: {error}")


class Progress:
    """What the output folder and the published boards hold of the cells."""

    def __init__(self, campaign: Campaign, settings: Settings, report: Reporter) -> None:
        self.campaign, self.settings = campaign, settings
        folders = [
            folder / TUNINGS_FOLDER for folder in (settings.out, campaign.published) if folder
        ]
        self.tunings = list(_sound_tunings(folders, report))
        self.stores = [RecordStore(settings.out), *self.published(RECORDS)]

    def published(self, folder: str) -> list[RecordStore]:
        """The records of that folder of the published boards, if the campaign names them."""
        published = self.campaign.published
        return [] if published is None else [RecordStore(published / folder)]

    def of(
        self, stage: CampaignStage, board_cell: SuiteCell, document: TuningDocument | None = None
    ) -> CampaignCell:
        """A model on a board, tuned by `document` or if it has been, with what is left of it."""
        cell = partial(CampaignCell, stage.name, board_cell.board.name, board_cell.model)
        plan = board_cell.plan
        if plan is None:
            if board_cell.unsupported is not None:
                return cell("unsupported", reason=board_cell.unsupported)
            return cell("failed", reason=str(board_cell.error))
        try:
            asked_shifts(plan)
            if plan.recipe is not None and self.campaign.trials > 0:
                document = document or self.tuning(plan)
                if document is None:
                    search = self._search(plan)
                    return cell("to run", search, seconds_left=self._seconds_of(search))
                plan = tuned(plan, document)
            return self._as_it_stands(cell, plan)
        except UsageError as error:
            return cell("failed", reason=str(error))

    def _as_it_stands(self, cell: Callable[..., CampaignCell], plan: Plan) -> CampaignCell:
        """The cell of a run that needs no search; raises UsageError for one that can't be made."""
        stands = standing_in(plan, self.stores)
        work = TrainRun(plan, adds_shifts=stands.state == "incomplete")
        if not stands.to_run:
            return cell("done" if stands.is_whole else "failed", work, stands.problem)
        self._require_device(plan)
        return cell("to run", work, seconds_left=self._seconds_of(work))

    def _require_device(self, plan: Plan) -> None:
        """Raise UsageError for a budget of another device than the training would have."""
        if plan.recipe is not None:
            require_device(plan.spec.budget, find_device(self.settings.device))

    def _search(self, plan: Plan) -> TrainRun:
        """A run after a search; raises UsageError for one that can't be made."""
        self._require_device(plan)
        search = self.campaign.search(plan.spec.model)
        planned = planned_search(plan, self.settings, search)
        if problem := planned.why_none_runs:
            raise UsageError(problem)
        return TrainRun(plan, search, planned.missing, search_key=planned.key)

    def _seconds_of(self, work: TrainRun) -> float:
        """What the budgets of a run and its trials still take."""
        seconds = 0.0 if work.adds_shifts else seconds_of(work.plan)
        if work.search is None:
            return seconds * share_left(work.plan, self.settings)
        return seconds + seconds_of_trials(work)

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
                seconds *= share_left(plan, seed_settings(self.settings))
                yield replace(one_cell, seconds_left=seconds)
            else:
                state: CellState = "done" if stands.is_whole else "failed"
                yield replace(one_cell, state=state, reason=stands.problem)
        merged = replace(cell, work=MergeSeeds(cell.plan), seconds_left=0.0)
        reason = f"{counted(missing, 'seed')} without a record"
        yield replace(merged, state="waiting", reason=reason) if missing else merged

    def tuning(self, plan: Plan) -> TuningDocument | None:
        """The tuning of this plan's budget with enough trials, if there is one.

        A small search space has fewer points than the campaign asks for; all of them are enough.
        """
        document = choose_tuning(plan, [t for t in self.tunings if t.budget == plan.spec.budget])
        if document is not None and (
            not agrees(plan, document) or imposed_arguments(plan, document)
        ):
            return None
        if document is None or len(document.trials) >= self.campaign.trials:
            return document
        search = self.campaign.search(plan.spec.model)
        return document if len(document.trials) >= len(points_in(plan, search)) else None

    def of_sweep(self, stage: CampaignStage, entry: SweepEntry) -> CampaignCell:
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
        has_steps = trained_by_steps(missing) + waiting > 0
        work = RunSweep(entry, folder, left, has_steps) if left else None
        if failures:
            return cell("failed", work, failures[0], seconds)
        return cell("to run" if work else "done", work, seconds_left=seconds)
