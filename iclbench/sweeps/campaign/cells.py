"""Cells: what a campaign consists of, and what is left of each, as folders of records tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ...api.budget import Budget
from ...api.errors import IclbenchError, UsageError, unknown
from ...api.suite import Suite
from ...api.tuning import TuningDocument
from ...console import counted
from ...files import RECORDS, STUDIES
from ...runs.plan import Plan
from ...runs.settings import Settings
from ...runs.store import RecordStore, has_end
from ...runs.suites import SuiteCell, find_suite, resolve_suite
from ...runs.tuned import FOLDER, agrees, choose_tuning, read_tunings, tuned
from ..cells import Cells, by_reason, runs_of
from ..files import SweepFile, read_sweep_file, stages_of
from ..tuning.search import missing_trials, planned_trials, trial_budget
from .apart import SEEDS, seed_plan, seed_settings
from .files import Campaign, Stage, SweepEntry

#: The folder of the sweeps' records, in the output folder.
SWEEPS = "sweeps"


@dataclass(frozen=True)
class Cell:
    """A model on a board, or a sweep: its plan, tuned if it has been, or why it has none."""

    stage: str
    board: str
    model: str
    plan: Plan | None = None
    sweep: SweepEntry | None = None
    problem: str | None = None
    #: Whether the model can't do the board, or other cells come first, which is no failure.
    unsupported: bool = False
    waiting: bool = False
    done: bool = False
    #: The seed of `plan` that runs alone, or whether its seeds' records are merged.
    seed: int | None = None
    merges: bool = False
    #: Trials that a tuning still needs, or runs of a sweep without a record.
    left: int = 0
    #: The seconds of the budget that they and the training take.
    seconds_left: float = 0.0

    @property
    def to_run(self) -> bool:
        """Whether the cell needs a process."""
        is_possible = self.plan is not None or self.sweep is not None
        return is_possible and not (self.done or self.waiting)

    @property
    def failed(self) -> bool:
        """Whether the cell can't be run though it should."""
        return self.problem is not None and not (self.unsupported or self.waiting)


def seconds_left(cells: Iterable[Cell]) -> float:
    """The seconds of core time, or device time, that the cells still take."""
    return sum(cell.seconds_left for cell in cells)


def cells_of(campaign: Campaign, settings: Settings) -> list[Cell]:
    """All cells in the order of the stages, each once, with what is left of each."""
    progress = _Progress(campaign, settings)
    cells: dict[str, Cell] = {}
    for stage in campaign.stage:
        for cell in _cells_of_stage(stage, progress, list(cells.values())):
            name = f"{cell.stage} {cell.board} {cell.model}"
            whole = cell.plan is not None and cell.seed is None
            cells.setdefault(cell.plan.spec.id if cell.plan and whole else name, cell)
    return list(cells.values())


def _cells_of_stage(stage: Stage, progress: _Progress, earlier: list[Cell]) -> Iterator[Cell]:
    if stage.suite is None:
        yield from (progress.of_sweep(stage, entry) for entry in stage.sweep)
        return
    if stage.winner_of is not None:
        yield from _winners(stage, progress, earlier)
        return
    for board_cell in _suite_cells(stage):
        cell = Cell(stage.name, board_cell.board.name, board_cell.model, board_cell.plan)
        if board_cell.plan is not None:
            yield progress.of(cell, board_cell.plan)
        else:
            yield _without_plan(cell, board_cell)


def _winners(stage: Stage, progress: _Progress, earlier: list[Cell]) -> Iterator[Cell]:
    """The model with the best tuning on each board, with that tuning, once all are tuned."""
    assert stage.suite is not None
    for board in _restricted(find_suite(stage.suite), stage.boards).boards:
        members = [
            cell
            for cell in earlier
            if (cell.stage, cell.board) == (stage.winner_of, board.name)
            and cell.plan is not None
            and cell.plan.recipe is not None
        ]
        if not members:
            problem = f"no model of {stage.winner_of} can be trained on it"
            yield Cell(stage.name, board.name, f"the best of {stage.winner_of}", problem=problem)
            continue
        tunings = [progress.tuning(cell.plan) for cell in members if cell.plan]
        known = [tuning for tuning in tunings if tuning is not None]
        if not known or len(known) < len(members):
            plan = board.request("any", **stage.fields)
            budget = Budget.parse(plan.budget).times(len(plan.seeds)) if plan.budget else None
            yield Cell(
                stage.name,
                board.name,
                f"the best of {stage.winner_of}",
                problem=f"{len(members) - len(known)} models of {stage.winner_of} are not tuned",
                waiting=True,
                seconds_left=budget.seconds if budget else 0.0,
            )
            continue
        best = max(known, key=lambda tuning: tuning.ranking.goodness(tuning.best.score))
        one = stage.model_copy(update={"models": (best.model,), "boards": (board.name,)})
        for board_cell in _suite_cells(one):
            cell = Cell(stage.name, board.name, board_cell.model)
            if board_cell.extra:
                continue
            if board_cell.plan is None:
                yield _without_plan(cell, board_cell)
                continue
            cell = progress.of(cell, board_cell.plan, best)
            is_apart = stage.apart and cell.problem is None
            yield from _seeds_apart(cell, progress) if is_apart else [cell]


def _without_plan(cell: Cell, board_cell: SuiteCell) -> Cell:
    """The cell with the reason for which it can't be run."""
    problem = board_cell.unsupported or str(board_cell.error)
    return replace(cell, problem=problem, unsupported=board_cell.unsupported is not None)


def _seeds_apart(cell: Cell, progress: _Progress) -> Iterator[Cell]:
    """A cell for each seed of a tuned run, and that of the record that merges them."""
    assert cell.plan is not None
    if cell.done:
        yield cell
        return
    stores = [RecordStore(seed_settings(progress.settings).out), *progress.published(SEEDS)]
    missing = 0
    for seed in cell.plan.spec.seeds:
        plan = seed_plan(cell.plan, seed)
        done = _has_record(plan, stores)
        missing += not done
        seconds = 0.0 if done else _seconds(plan)
        name = f"{cell.model} seed {seed}"
        yield replace(cell, model=name, seed=seed, done=done, seconds_left=seconds)
    problem = f"{counted(missing, 'seed')} without a record" if missing else None
    yield replace(cell, merges=True, waiting=missing > 0, problem=problem, seconds_left=0.0)


def _suite_cells(stage: Stage) -> Iterator[SuiteCell]:
    """The cells of a stage, board by board; those of the solvers that a board names come first."""
    assert stage.suite is not None
    suite = _restricted(find_suite(stage.suite), stage.boards)
    groups = [(entry,) if isinstance(entry, str) else entry for entry in stage.models]
    names = [name for group in groups for name in group]
    changes = {n: {**stage.fields, "model_args": stage.model_args.get(n, {})} for n in names}
    cells = resolve_suite(suite, names, changes)
    for board in suite.boards:
        on_board = [cell for cell in cells if cell.board.name == board.name]
        yield from (cell for cell in on_board if cell.extra)
        for group in groups:
            models = {cell.model: cell for cell in on_board if not cell.extra}
            candidates = [models[name] for name in group if name in models]
            able = [cell for cell in candidates if cell.unsupported is None]
            yield from (able or candidates)[:1]


def _restricted(suite: Suite, boards: tuple[str, ...]) -> Suite:
    """The suite with these boards alone, in this order; raises UsageError for an unknown one."""
    contents = dict(zip([board.name for board in suite.boards], suite.board, strict=True))
    for name in boards:
        if name not in contents:
            raise unknown(f"board of the suite {suite.name}", name, contents)
    return suite.model_copy(update={"board": tuple(contents[name] for name in boards or contents)})


class _Progress:
    """What the output folder and the published boards hold of the cells."""

    def __init__(self, campaign: Campaign, settings: Settings) -> None:
        self.campaign, self.settings = campaign, settings
        folders = [folder / FOLDER for folder in (settings.out, campaign.published) if folder]
        self.tunings = read_tunings([f for f in folders if any(f.glob("*.json"))])
        self.stores = [RecordStore(settings.out), *self.published(RECORDS)]

    def published(self, folder: str) -> list[RecordStore]:
        """The records of that folder of the published boards, if the campaign names them."""
        published = self.campaign.published
        return [] if published is None else [RecordStore(published / folder)]

    def of(self, cell: Cell, plan: Plan, document: TuningDocument | None = None) -> Cell:
        """The cell with its plan, tuned if it has been, and with what is left of it."""
        trains, left = plan.recipe is not None, 0
        is_searched = trains and self.campaign.trials > 0
        if is_searched:
            document = document or self.tuning(plan)
            if document is not None:
                try:
                    plan = tuned(plan, document)
                except UsageError as error:
                    return replace(cell, problem=str(error))
            else:
                left = missing_trials(plan, self.settings, self.campaign.search(cell.model))
        if (plan.tuning is not None or not is_searched) and _has_record(plan, self.stores):
            return replace(cell, plan=plan, done=True)
        seconds = _seconds(plan)
        if left and plan.spec.budget is not None:
            seconds += left * Budget.parse(trial_budget(plan.spec.budget)).seconds
        return replace(cell, plan=plan, left=left, seconds_left=seconds)

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
        points = len(planned_trials(plan, self.settings, search))
        return document if len(document.trials) >= points else None

    def of_sweep(self, stage: Stage, entry: SweepEntry) -> Cell:
        """The cell of a sweep. Grids that take weights of another count once those are there.

        A sweep is published whole or not at all: it runs in one folder. Runs that no plan can be
        made for are the cell's problem; the others run all the same.
        """
        cell = Cell(stage.name, entry.out, entry.size, sweep=entry)
        try:
            file = read_sweep_file(entry.file).sized(entry.size)
            if any(_is_whole(file, s) for s in self.published(f"{STUDIES}/{entry.out}")):
                return replace(cell, done=True)
            store = RecordStore(sweep_folder(self.settings, entry))
            plans, waiting, failures = _plans_of(file, store)
        except IclbenchError as error:
            return replace(cell, sweep=None, problem=str(error))
        missing = [plan for plan in plans if not _has_record(plan, [store])]
        left = len(missing) + waiting
        whole = len(plans) + waiting
        stepped = sum(plan.recipe is not None and not plan.spec.budget for plan in missing)
        estimate = 3600 * entry.hours * left / whole if stepped or waiting else 0.0
        seconds = estimate + sum(_seconds(plan) for plan in missing)
        if failures:
            to_run = entry if left else None
            return replace(cell, sweep=to_run, problem=failures[0], left=left, seconds_left=seconds)
        return replace(cell, done=not left, left=left, seconds_left=seconds)


def _has_record(plan: Plan, stores: Iterable[RecordStore]) -> bool:
    return any(has_end(store.path(plan.spec)) for store in stores)


def sweep_folder(settings: Settings, entry: SweepEntry) -> Path:
    """Where the records of a sweep go."""
    return settings.out / SWEEPS / entry.out


def _is_whole(file: SweepFile, store: RecordStore) -> bool:
    """Whether every run of a sweep has a record in the store."""
    plans, waiting, failures = _plans_of(file, store)
    return not waiting and not failures and all(_has_record(plan, [store]) for plan in plans)


def _plans_of(file: SweepFile, store: RecordStore) -> tuple[list[Plan], int, list[str]]:
    """The plans of a sweep, how many runs wait for the weights of others, and what can't run."""
    cells = Cells(file, store)
    for grids in stages_of(file):
        cells.resolve(grids)
    plans = [cells.plan(cell) for cell in cells.in_order()]
    return plans, runs_of(cells.waiting), by_reason(cells.failures)


def _seconds(plan: Plan) -> float:
    """What the plan's budget is; 0 without one."""
    if plan.recipe is None or plan.spec.budget is None:
        return 0.0
    return float(Budget.parse(plan.spec.budget).times(len(plan.spec.seeds)).seconds)
