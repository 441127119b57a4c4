"""Running a campaign: what is left, in order, one cell per process.

A campaign is continued by running it again: trials of a tuning, checkpoints and records that exist
are used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...api.config import parse_config
from ...api.errors import IclbenchError, UsageError
from ...api.executor import JobListener, QueueExecutor
from ...api.spec import RunSpec
from ...api.tuning import TuningDocument
from ...console import counted
from ...console import report as report_now
from ...devices import require_devices
from ...files import require_writable
from ...runs.plan import resolve
from ...runs.run import run_plans
from ...runs.settings import Settings
from ...runs.tuned import tuned, write_tuning
from ...training.interruption import interruptible
from ..programs import make_executor
from ..sweep import sweep
from ..tuning.search import SearchSettings, tune
from .apart import PATIENCE, merge, run_seed, take_seeds
from .cells import Cell, cells_of, sweep_folder
from .files import Campaign

Reporter = Callable[[str], None]

#: Why a cell was not started.
NO_HOURS = "not started: it needs more hours than are left"


def run_campaign(
    campaign: Campaign,
    settings: Settings,
    *,
    workers: int = 1,
    hours: float | None = None,
    executor: str = "local",
    executor_args: Mapping[str, Any] | None = None,
    report: Reporter = lambda line: None,
    listener: JobListener | None = None,
) -> list[str]:
    """Run all cells that are left, in order; returns the reasons of those that failed, a line each.

    With `hours`, no cell starts that takes longer than what remains of them. `report` gets a line
    per cell that ended, and `listener` what the executor tells. Raises UsageError for an executor
    with a queue and for a device that can't be used, and Interrupted after a signal; trials,
    checkpoints and records are kept.
    """
    program = make_executor(executor, executor_args or {}, settings.out)
    if isinstance(program, QueueExecutor):
        raise UsageError(
            f"--executor {executor} has a queue, which campaigns don't support: a second "
            "start would submit running jobs again; use `iclbench sweep`"
        )
    program.listener = listener
    require_devices(settings.device, workers, remote=program.remote)
    require_writable(settings.out)
    if campaign.published is not None and any(stage.apart for stage in campaign.stage):
        take_seeds(campaign.published, settings)
    until = None if hours is None else time.time() + 3600 * hours
    failures: dict[str, str] = {}
    tried: set[str] = set()
    with interruptible():
        # A second round runs the cells that waited for the first.
        while True:
            cells = cells_of(campaign, settings)
            failures |= {_name(c): _label(c, c.problem) for c in cells if c.failed}
            missing = [cell for cell in cells if cell.to_run and _name(cell) not in tried]
            if not missing:
                # Without a limit of hours, what still waits never gets what it waits for.
                waiting = {_name(c): _label(c, c.problem) for c in cells if c.waiting}
                return list((failures or (waiting if until is None else {})).values())
            tried |= {_name(cell) for cell in missing}
            jobs = [_job(cell, campaign, settings, until, workers) for cell in missing]
            with closing(program.map(run_cell, jobs, workers)) as outcomes:
                for finished, (index, outcome) in enumerate(outcomes, start=1):
                    cell, reason = missing[index], None if outcome is None else str(outcome)
                    report(f"[{finished}/{len(jobs)}] {_label(cell, reason or 'done')}")
                    if reason not in {None, NO_HOURS}:
                        failures[_name(cell)] = _label(cell, reason)


def _name(cell: Cell) -> str:
    return f"{cell.stage}: {cell.model} on {cell.board}"


def _label(cell: Cell, text: str | None) -> str:
    return f"{_name(cell)}: {text}"


def _job(
    cell: Cell, campaign: Campaign, settings: Settings, until: float | None, workers: int
) -> dict[str, Any]:
    job: dict[str, Any] = {
        # Jobs may run in another folder.
        "out": str(settings.out.absolute()),
        "device": settings.device,
        "engine": settings.engine,
        "until": until,
        "seconds": cell.seconds_left,
    }
    if cell.sweep is not None:
        out = str(sweep_folder(settings, cell.sweep).absolute())
        return job | {"sweep": str(cell.sweep.file.absolute()), "size": cell.sweep.size, "out": out}
    assert cell.plan is not None
    is_searched = cell.plan.recipe is not None and campaign.trials > 0
    tuning = cell.plan.tuning
    search = asdict(campaign.search(cell.model)) if is_searched and tuning is None else None
    return job | {
        "request": cell.plan.request.model_dump(mode="json"),
        "search": search,
        "tuned": None if tuning is None else tuning.document,
        "seed": cell.seed,
        # Seeds one after another have nothing to wait for.
        "patience": PATIENCE if workers > 1 else 0.0,
        "merges": cell.merges,
    }


def run_cell(job: dict[str, Any]) -> str | None:
    """Run one cell, after tuning it; returns the reason if it failed.

    Running a job again continues it.
    """
    if job["until"] is not None and time.time() + job["seconds"] > job["until"]:
        return NO_HOURS
    settings = Settings(out=Path(job["out"]), device=job["device"], engine=job["engine"])
    try:
        with interruptible():
            if "sweep" in job:
                return _run_sweep(job, settings)
            _run_plan(job, settings)
    except IclbenchError as error:
        return str(error)
    return None


def _run_plan(job: dict[str, Any], settings: Settings) -> None:
    plan = resolve(parse_config(RunSpec, job["request"], "run"))
    if job["tuned"] is not None:
        plan = tuned(plan, parse_config(TuningDocument, job["tuned"], "tuning"))
    elif job["search"] is not None:
        name = f"tuning {plan.spec.model} on {plan.spec.task}"
        search = SearchSettings(**job["search"])
        document = tune(plan, settings, search, lambda line: report_now(f"{name}: {line}"))
        write_tuning(settings.out, document)
        plan = tuned(plan, document)
    if job["merges"]:
        merge(plan, settings)
    elif job["seed"] is not None:
        run_seed(plan, job["seed"], settings, job["patience"])
    else:
        run_plans([plan], settings)


def _run_sweep(job: dict[str, Any], settings: Settings) -> str | None:
    """Run a sweep in this process; returns the reason of its first failure, and their number."""
    result = sweep(
        job["sweep"],
        recipe=job["size"],
        out=settings.out,
        device=settings.device,
        engine=settings.engine,
        report=lambda line: report_now(f"{settings.out.name}: {line}"),
    )
    if not result.failures:
        return None
    return f"{counted(result.missing, 'run')} failed; {result.failures[0].reason}"
