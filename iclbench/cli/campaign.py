"""`iclbench campaign`: run the stages of a TOML file in order, as long as hours are left."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import UsageError
from ..api.options import parse_arguments
from ..console import counted, report, shell_path
from ..display.table import Output
from .common import (
    Device,
    Engine,
    ExecutorArgs,
    ExecutorName,
    Out,
    Strict,
    end_with,
    job_reporter,
    sound_host,
)
from .interruption import stops_on_signals
from .paths import usable_path

if TYPE_CHECKING:
    from ..runs.settings import Settings
    from ..sweeps.campaign.cell import CampaignCell
    from ..sweeps.campaign.files import Campaign
    from ..sweeps.campaign.work import Work


CampaignFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A campaign file (TOML).", parser=usable_path)
]


def campaign(
    file: CampaignFile,
    out: Out = "leaderboards/campaign",
    stage: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run this stage and those it needs; default: all."),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(min=0, metavar="H", help="Time limit; cells that don't fit are not started."),
    ] = None,
    device: Device = "auto",
    executor: ExecutorName = "local",
    executor_args: ExecutorArgs = None,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Cells to run at once, each in a process.")
    ] = 1,
    engine: Engine = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the plan and the hours it needs.")
    ] = False,
    strict: Strict = False,
) -> None:
    """Run every stage: tune and train its models, or run its sweeps.

    Run the same command again to continue. A failed cell does not stop the others. With --dry-run,
    list the state of every cell and the hours needed.
    """
    if dry_run and hours is not None:
        raise UsageError("--dry-run prints the hours of the whole campaign: leave out --hours")
    sound_host(strict)
    with stops_on_signals(f"to continue: {shlex.join(['iclbench', *sys.argv[1:]])}"):
        from ..display.views import waiting

        with waiting("loading torch"):
            from ..display.progress import progress_of_jobs
            from ..runs.settings import Settings
            from ..sweeps.campaign.files import read_campaign
            from ..sweeps.campaign.run import executor_of, run_campaign

        whole = read_campaign(file)
        content = whole if stage is None else whole.only(stage)
        settings = Settings(out=Path(out), device=device, engine=engine)
        executor_options = parse_arguments(executor_args or [], "--executor-args")
        if dry_run:
            executor_of(settings, executor, executor_options, workers)
            raise typer.Exit(_print_plan(content, settings, workers))
        with progress_of_jobs("planning the campaign") as display:
            failures = run_campaign(
                content,
                settings,
                workers=workers,
                hours=hours,
                executor=executor,
                executor_args=executor_options,
                report=job_reporter(display, Output()),
                listener=display,
            )
    _end(failures, settings.out)


def _end(failures: list[str], out: Path) -> None:
    """Say where the records are, also where nothing was left to run, and what failed."""
    from ..runs.store import RecordStore

    if any(RecordStore(out).paths()):
        report(f"records in {out}: iclbench leaderboard show {shell_path(out)}")
    end_with(failures, 1 if failures else 0)


def _print_plan(content: Campaign, settings: Settings, workers: int) -> int:
    """Print every cell with what is left of it, and the time of each stage; the exit code."""
    from ..display.terminal import print_hanging
    from ..display.views import duration
    from ..sweeps.campaign.cell import seconds_left
    from ..sweeps.campaign.cells import cells_of

    cells = cells_of(content, settings)
    width = max(len(cell.board) for cell in cells)
    members = {name: list(group) for name, group in groupby(cells, key=lambda cell: cell.stage)}
    for stage in content.stage:
        group = members.get(stage.name, [])
        if not group:
            typer.echo(f"{stage.name}: {stage.summary}\n  its cells are all in earlier stages")
            continue
        done = sum(cell.state == "done" for cell in group)
        possible = sum(cell.state != "unsupported" for cell in group)
        time_left = f", {duration(left)} left" if (left := seconds_left(group)) else ""
        typer.echo(f"{stage.name}: {stage.summary}\n  {done} of {possible} done{time_left}")
        for cell in group:
            print_hanging(f"  {cell.board:<{width}}  {cell.model}: {_state(cell)}", width + 4)
    typer.echo(_left(cells, workers))
    return int(any(cell.state == "failed" for cell in cells))


def _left(cells: Sequence[CampaignCell], workers: int) -> str:
    """What all cells still take, in a line."""
    from ..display.views import duration
    from ..sweeps.campaign.cell import count_fixed_steps, seconds_left

    left, stepped = seconds_left(cells), count_fixed_steps(cells)
    if not left and not stepped:
        return "left: no training"
    # A cell is one process, whatever the number of workers.
    least = max(left / workers, max((cell.seconds_left for cell in cells), default=0.0))
    at_once = f", or at least {duration(least)} with {workers} at once" if workers > 1 else ""
    parts = [f"{duration(left)} of training{at_once}"] if left else []
    parts += [f"{counted(stepped, 'training')} with fixed steps"] if stepped else []
    return f"left: {', plus '.join(parts)}; evaluation comes on top"


def _state(cell: CampaignCell) -> str:
    """What is left of a cell."""
    if cell.work is not None and cell.state == "to run":
        return _action(cell.work, cell.seconds_left)
    word = "error" if cell.state == "failed" else cell.state
    told = f"{word}: {cell.reason}" if cell.reason else word
    if cell.work is not None and cell.to_run:
        return f"{_action(cell.work, cell.seconds_left)}; {told}"
    return told


def _action(work: Work, seconds: float) -> str:
    """What running a cell does."""
    from ..display.progress import action_of
    from ..display.views import duration
    from ..sweeps.campaign.work import MergeSeeds, RunSweep, TrainSeed

    match work:
        case RunSweep():
            return f"{counted(work.runs, 'run')} of the sweep, {duration(seconds)}"
        case MergeSeeds():
            return "merge the seeds' records"
        case TrainSeed():
            return f"train this seed for {work.plan.spec.budget or 'the given steps'}"
    if work.adds_shifts:
        return "evaluate its record under further shifts"
    trials = f"{counted(work.trials, 'trial')}, then " if work.trials else ""
    return f"{trials}{action_of(work.plan.spec)}"
