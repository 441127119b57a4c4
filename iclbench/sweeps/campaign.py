"""Campaigns: suites and sweeps in a given order, one process per cell, until the hours end.

A campaign is continued by running it again: trials of a tuning, checkpoints and records that exist
are used. What is left follows from its output folder alone.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from ..api.budget import Budget
from ..api.config import Config, parse_config
from ..api.errors import IclbenchError, UsageError, unknown
from ..api.executor import Executor
from ..api.spec import RunSpec
from ..api.suite import Suite
from ..api.tuning import TuningDocument
from ..console import report as report_now
from ..files import require_writable
from ..plugins import host
from ..runs.plan import Plan, resolve
from ..runs.run import run_plans
from ..runs.settings import Settings
from ..runs.store import RecordStore
from ..runs.suites import SuiteCell, find_suite, resolve_suite
from ..runs.tuned import FOLDER, choose_tuning, read_tunings, tuned, write_tuning
from ..training.interruption import interruptible
from .tuning.search import SearchSettings, missing_trials, trial_budget, tune

Reporter = Callable[[str], None]

#: Why a cell was not started.
NO_HOURS = "not started: fewer hours are left than it takes"


class Stage(Config):
    """Boards of a suite, and the models that get a row on each."""

    name: str
    summary: str = Field(description="one line")
    suite: str = Field(description="name, or a TOML file")
    boards: tuple[str, ...] = Field((), description="of the suite; default: all")
    models: tuple[str | tuple[str, ...], ...] = Field(
        min_length=1, description="of a list of names, the first that can do the board"
    )
    fields: dict[str, Any] = Field({}, description="of a run, which replace those of the suite")
    model_args: dict[str, dict[str, Any]] = Field({}, description="arguments of each model")


class Campaign(Config):
    """An ordered list of stages; what is trained is tuned first."""

    trials: int = Field(12, ge=0, description="of each tuning; 0: nothing is tuned")
    search_seed: int = Field(0, ge=0, description="of the tunings")
    space: dict[str, dict[str, Any]] = Field({}, description="changes to each model's search space")
    stage: tuple[Stage, ...] = Field(min_length=1)

    def search(self, model: str) -> SearchSettings:
        """How a model is tuned."""
        space = self.space.get(model, {})
        return SearchSettings(trials=self.trials, search_seed=self.search_seed, space=space)

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Campaign:
        names = [stage.name for stage in self.stage]
        if len({*names}) < len(names):
            raise ValueError("two stages have one name")
        return self


def read_campaign(path: Path) -> Campaign:
    """The campaign in a TOML file; raises UsageError if it is invalid."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    return parse_config(Campaign, content, str(path))


@dataclass(frozen=True)
class Cell:
    """A model on a board: its plan, tuned if it has been, or the problem that prevents it."""

    stage: str
    board: str
    model: str
    plan: Plan | None = None
    problem: str | None = None
    #: Whether the model can't do the board, which is no failure.
    unsupported: bool = False
    done: bool = False
    #: Trials that a tuning still needs; the seconds of the budget that they and the training take.
    trials_left: int = 0
    seconds_left: float = 0.0

    @property
    def to_run(self) -> bool:
        """Whether the cell needs a process."""
        return self.plan is not None and not self.done


def cells_of(campaign: Campaign, settings: Settings) -> list[Cell]:
    """All cells in the order of the stages, each once, with what is left of each."""
    progress = _Progress(campaign, settings)
    cells: dict[str, Cell] = {}
    for stage in campaign.stage:
        for found in _suite_cells(stage):
            cell = Cell(stage.name, found.board.name, found.model, found.plan)
            if found.plan is None:
                unsupported = found.unsupported is not None
                problem = found.unsupported or str(found.error)
                cell = replace(cell, problem=problem, unsupported=unsupported)
                cells[f"{stage.name} {cell.board} {cell.model}"] = cell
            else:
                cells.setdefault(found.plan.spec.id, progress.of(cell, found.plan))
    return list(cells.values())


def _suite_cells(stage: Stage) -> Iterator[SuiteCell]:
    """The cells of a stage, board by board; those of the solvers that a board names come first."""
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
    """The suite with these boards alone; raises UsageError for an unknown one."""
    known = [board.name for board in suite.boards]
    for name in boards:
        if name not in known:
            raise unknown(f"board of the suite {suite.name}", name, known)
    kept = [content for content in suite.board if not boards or content["name"] in boards]
    return suite.model_copy(update={"board": tuple(kept)})


class _Progress:
    """What an output folder holds of the cells: tunings, trials and records."""

    def __init__(self, campaign: Campaign, settings: Settings) -> None:
        self.campaign, self.settings = campaign, settings
        folder = settings.out / FOLDER
        self.tunings = read_tunings([folder]) if any(folder.glob("*.json")) else []
        self.store = RecordStore(settings.out)

    def of(self, cell: Cell, plan: Plan) -> Cell:
        """The cell with its plan, tuned if it has been, and with what is left of it."""
        trains, left = plan.recipe is not None, 0
        is_searched = trains and self.campaign.trials > 0
        if is_searched:
            document = self._tuning(plan)
            if document is not None:
                plan = tuned(plan, document)
            else:
                left = missing_trials(plan, self.settings, self.campaign.search(cell.model))
        if (plan.tuning is not None or not is_searched) and self.store.path(plan.spec).exists():
            return replace(cell, plan=plan, done=True)
        seconds = 0.0
        if trains and plan.spec.budget is not None:
            seconds = Budget.parse(plan.spec.budget).times(len(plan.spec.seeds)).seconds
            seconds += left * Budget.parse(trial_budget(plan.spec.budget)).seconds
        return replace(cell, plan=plan, trials_left=left, seconds_left=seconds)

    def _tuning(self, plan: Plan) -> TuningDocument | None:
        """The tuning of this plan's budget with enough trials, if there is one."""
        enough = [t for t in self.tunings if len(t.trials) >= self.campaign.trials]
        return choose_tuning(plan, [t for t in enough if t.budget == plan.spec.budget])


def run_campaign(
    campaign: Campaign,
    settings: Settings,
    *,
    workers: int = 1,
    hours: float | None = None,
    executor: str = "local",
    report: Reporter = lambda line: None,
) -> list[str]:
    """Run all cells that are left, in order; returns the reasons of those that failed, a line each.

    After `hours` no cell starts, and none starts whose budget exceeds the hours that remain.
    Raises Interrupted after a signal; trials, checkpoints and records are kept.
    """
    require_writable(settings.out)
    with interruptible():
        cells = cells_of(campaign, settings)
        failures = [_label(c, c.problem) for c in cells if c.problem and not c.unsupported]
        missing = [cell for cell in cells if cell.to_run]
        until = None if hours is None else time.time() + 3600 * hours
        jobs = [_job(cell, campaign, settings, until) for cell in missing]
        program = host().load("executor", executor, Executor)()
        with closing(program.map(run_cell, jobs, workers)) as outcomes:
            for finished, (index, outcome) in enumerate(outcomes, start=1):
                reason = None if outcome is None else str(outcome)
                line = _label(missing[index], reason or "done")
                report(f"[{finished}/{len(jobs)}] {line}")
                failures += [line] if reason not in {None, NO_HOURS} else []
    return failures


def _label(cell: Cell, text: str | None) -> str:
    return f"{cell.stage}: {cell.model} on {cell.board}: {text}"


def _job(cell: Cell, campaign: Campaign, settings: Settings, until: float | None) -> dict[str, Any]:
    assert cell.plan is not None
    search = asdict(campaign.search(cell.model)) if cell.plan.recipe else None
    return {
        "request": cell.plan.request.model_dump(mode="json"),
        "search": search if cell.plan.tuning is None and campaign.trials else None,
        "tuned": None if cell.plan.tuning is None else cell.plan.tuning.document,
        "out": str(settings.out),
        "device": settings.device,
        "engine": settings.engine,
        "until": until,
        "seconds": cell.seconds_left,
    }


def run_cell(job: dict[str, Any]) -> str | None:
    """Tune and run one cell; returns the reason if it failed.

    Running a job again continues it.
    """
    if job["until"] is not None and time.time() + job["seconds"] > job["until"]:
        return NO_HOURS
    settings = Settings(out=Path(job["out"]), device=job["device"], engine=job["engine"])
    try:
        with interruptible():
            plan = resolve(parse_config(RunSpec, job["request"], "run"))
            if job["tuned"] is not None:
                plan = tuned(plan, parse_config(TuningDocument, job["tuned"], "tuning"))
            elif job["search"] is not None:
                name = f"tuning {plan.spec.model} on {plan.spec.task}"
                search = SearchSettings(**job["search"])
                document = tune(plan, settings, search, lambda line: report_now(f"{name}: {line}"))
                write_tuning(settings.out, document)
                plan = tuned(plan, document)
            run_plans([plan], settings)
    except IclbenchError as error:
        return str(error)
    return None


def hours_left(cells: Sequence[Cell]) -> float:
    """The core hours, or device hours, that the budgets of the cells still take."""
    return sum(cell.seconds_left for cell in cells) / 3600
