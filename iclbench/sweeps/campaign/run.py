"""Running a campaign: what is left, in order, one cell per process.

A campaign is continued by running it again: trials of a tuning, checkpoints and records that exist
are used.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...api.config import parse_config
from ...api.errors import PLUGIN_FAILURES, RecordError, UsageError, reason_of
from ...api.executor import Executor, JobListener, QueueExecutor
from ...api.spec import RunSpec
from ...api.tuning import TuningDocument
from ...console import Reporter, counted, show_traceback
from ...console import report as report_now
from ...files import RECORDS, require_writable
from ...runs.plan import Plan, resolve
from ...runs.run import run_plans
from ...runs.settings import Settings
from ...runs.store import require_results
from ...runs.tuned import tuned
from ...training.interruption import ignore, interruptible
from ..executor import outcomes_of, usable_executor
from ..jobs import settings_json, settings_of
from ..sweep import sweep
from ..tuning.search import tune_and_write
from ..tuning.settings import SearchSettings
from .apart import PATIENCE, merge, run_seed
from .cell import CampaignCell, count_fixed_steps
from .cells import cells_of
from .files import Campaign
from .taken import take_record, take_seeds
from .work import MergeSeeds, RunSweep, TrainRun, TrainSeed, Work

#: Why a cell was not started.
NO_HOURS = "not started: it needs more hours than are left"


def executor_of(
    settings: Settings, name: str, arguments: Mapping[str, Any], workers: int
) -> Executor:
    """The executor of a campaign; raises UsageError as `usable_executor`, and for a queue."""
    out, device = settings.out, settings.device
    program, _ = usable_executor(name, arguments, out=out, device=device, workers=workers)
    if isinstance(program, QueueExecutor):
        raise UsageError(
            f"--executor {name} has a queue, which campaigns don't support: a second "
            "start would submit running jobs again; use `iclbench sweep`"
        )
    return program


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
    with a queue, no worker, or a device that can't be used, and Interrupted after a signal; trials,
    checkpoints and records are kept.
    """
    if hours is not None and not hours >= 0:
        raise UsageError(f"hours={hours}: a number of at least 0 is needed")
    program = executor_of(settings, executor, executor_args or {}, workers)
    program.listener = listener
    require_results(settings.out)
    require_writable(settings.out)
    if campaign.published is not None and any(stage.apart for stage in campaign.stage):
        take_seeds(campaign.published, settings)
    until = None if hours is None else time.time() + 3600 * hours
    failures: dict[str, str] = {}
    tried: set[str] = set()
    say = _once(report_now)
    with interruptible():
        # Each further round runs the cells that waited for those of an earlier one.
        while True:
            cells = cells_of(campaign, settings, say)
            failures |= {c.name: f"{c.name}: {c.reason}" for c in cells if c.state == "failed"}
            missing = [cell for cell in cells if cell.to_run and cell.name not in tried]
            if not missing:
                return _problems(cells, failures, is_limited=until is not None)
            total = len(tried) + len(missing) + sum(cell.state == "waiting" for cell in cells)
            missing = before_waiting(cells, missing)
            missing = missing if workers == 1 else one_per_search(missing)
            stepped = count_fixed_steps(missing)
            if until is not None and stepped:
                what = counted(stepped, "training")
                report(f"{what} with fixed steps: their hours are unknown and not limited")
            before = len(tried)
            tried |= {cell.name for cell in missing}
            jobs = [_job(cell, settings, campaign.published, until, workers) for cell in missing]
            with closing(outcomes_of(program, run_cell, jobs, workers)) as outcomes:
                for finished, (index, outcome) in enumerate(outcomes, start=before + 1):
                    name, is_error = missing[index].name, isinstance(outcome, BaseException)
                    reason = reason_of(outcome) if is_error else outcome
                    takes = f" ({missing[index].seconds_left / 3600:.2g})" * (reason == NO_HOURS)
                    report(f"[{finished}/{total}] {name}: {reason or 'done'}{takes}")
                    if reason not in {None, NO_HOURS}:
                        failures[name] = f"{name}: {reason}"


def _problems(
    cells: Sequence[CampaignCell], failures: Mapping[str, str], *, is_limited: bool
) -> list[str]:
    """The failures, by the name of the cell, of those that are not done now; else what waits."""
    # Another process may have done what failed here. Two cells may share a name: a solver that is
    # a model of the stage, and that the board names as well.
    open_ = {cell.name for cell in cells if cell.state not in {"done", "unsupported"}}
    done = {cell.name for cell in cells if cell.state == "done"} - open_
    lines = [line for name, line in failures.items() if name not in done]
    # Without a limit of hours, what still waits never gets what it waits for.
    waiting = [cell for cell in cells if cell.state == "waiting" and not is_limited]
    return lines or [f"{cell.name}: {cell.reason}" for cell in waiting]


def _once(say: Reporter) -> Reporter:
    """Says each line once: every round of a campaign reads the same files."""
    said: set[str] = set()

    def say_once(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return say_once


def before_waiting(
    cells: Sequence[CampaignCell], missing: list[CampaignCell]
) -> list[CampaignCell]:
    """Those of the `missing` cells that come before a waiting one's turn: those of no later stage.

    That is the first waiting cell that has such cells before it; without any, all are returned.
    """
    order = {stage: i for i, stage in enumerate(dict.fromkeys(cell.stage for cell in cells))}
    for waiting in (cell for cell in cells if cell.state == "waiting"):
        before = [cell for cell in missing if order[cell.stage] <= order[waiting.stage]]
        if before:
            return before
    return missing


def one_per_search(cells: list[CampaignCell]) -> list[CampaignCell]:
    """The cells without those that need a search of an earlier one.

    Two processes can't run one search; once it has ended, the others find its tuning.
    """
    keys = [cell.work.search_key if isinstance(cell.work, TrainRun) else "" for cell in cells]
    return [cell for i, cell in enumerate(cells) if not keys[i] or keys[i] not in keys[:i]]


def _job(
    cell: CampaignCell,
    settings: Settings,
    published: Path | None,
    until: float | None,
    workers: int,
) -> dict[str, Any]:
    assert cell.work is not None
    return {
        **settings_json(settings),
        "until": until,
        "seconds": cell.seconds_left,
        "published": None if published is None else str((published / RECORDS).absolute()),
        # Seeds one after another have nothing to wait for.
        "patience": PATIENCE if workers > 1 else 0.0,
        **_work_json(cell.work),
    }


def _work_json(work: Work) -> dict[str, Any]:
    if isinstance(work, RunSweep):
        file, folder = str(work.entry.file.absolute()), str(work.folder.absolute())
        return {"does": "sweep", "file": file, "size": work.entry.size, "folder": folder}
    tuning = None if work.plan.tuning is None else work.plan.tuning.document
    plan = {"request": work.plan.request.model_dump(mode="json"), "tuning": tuning}
    match work:
        case MergeSeeds():
            return {"does": "merge", **plan}
        case TrainSeed():
            return {"does": "seed", **plan, "seed": work.seed}
        case TrainRun():
            return {"does": "run", **plan, "search": work.search and asdict(work.search)}


def run_cell(job: dict[str, Any]) -> str | None:
    """Run one cell, after tuning it; returns the reason if it failed.

    Running a job again continues it.
    """
    if job["until"] is not None and time.time() + job["seconds"] > job["until"]:
        return NO_HOURS
    settings = settings_of(job)
    try:
        with interruptible(second=ignore):
            match job["does"]:
                case "sweep":
                    return _run_sweep(job, settings)
                case "merge":
                    merge(_plan(job), settings)
                case "seed":
                    run_seed(_plan(job), job["seed"], settings, job["patience"])
                case "run":
                    plan = _tuned(_plan(job), job["search"], settings)
                    _take_record(plan, job["published"], settings)
                    run_plans([plan], settings)
    except PLUGIN_FAILURES as error:
        show_traceback(error)
        return reason_of(error)
    return None


def _plan(job: dict[str, Any]) -> Plan:
    plan = resolve(parse_config(RunSpec, job["request"], "run"))
    if job["tuning"] is None:
        return plan
    return tuned(plan, parse_config(TuningDocument, job["tuning"], "tuning"))


def _tuned(plan: Plan, search: dict[str, Any] | None, settings: Settings) -> Plan:
    """The plan as it is run: where there is a search, tuned by it now."""
    if search is None:
        return plan
    name = f"tuning {plan.spec.model} on {plan.spec.task}"
    document, _ = tune_and_write(
        plan, settings, SearchSettings(**search), lambda line: report_now(f"{name}: {line}")
    )
    return tuned(plan, document)


def _take_record(plan: Plan, published: str | None, settings: Settings) -> None:
    """Take the published record of a run; where it is damaged, the run is trained again."""
    try:
        if published is not None:
            take_record(Path(published), plan.spec, settings.out)
    except RecordError as error:
        report_now(f"not taken: {error}")


def _run_sweep(job: dict[str, Any], settings: Settings) -> str | None:
    """Run a sweep in this process; returns the reason of its first failure, and their number."""
    folder = Path(job["folder"])
    result = sweep(
        job["file"],
        size=job["size"],
        out=folder,
        device=settings.device,
        engine=settings.engine,
        checkpoint_seconds=settings.checkpoint_seconds,
        eval_batch=settings.eval_batch,
        report=lambda line: report_now(f"{folder.name}: {line}"),
    )
    if not result.failures:
        return None
    return f"{counted(result.missing, 'run')} failed; {result.failures[0].reason}"
