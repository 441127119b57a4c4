"""`iclbench sweep`: run the grids of a TOML file; existing records are skipped."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import UsageError
from ..api.options import parse_arguments
from ..console import report
from ..display.table import Output
from .boards_of_runs import print_boards_of, require_columns_of_boards
from .common import (
    CheckpointSeconds,
    Columns,
    Device,
    DryRun,
    Engine,
    ExecutorArgs,
    ExecutorName,
    Sort,
    Strict,
    Style,
    Workers,
    end_with,
    job_reporter,
    show_table,
    sound_host,
)
from .interruption import stops_on_signals
from .paths import path_text, usable_path

if TYPE_CHECKING:
    from ..api.executor import Executor
    from ..sweeps.files import SweepFile
    from ..sweeps.sweep import HowToRun, SweepResult

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A sweep file (TOML), or a study's name.", parser=usable_path
    ),
]
OutOfSweep = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Output folder; overrides the file's.", parser=path_text),
]
Detach = Annotated[
    bool, typer.Option("--detach", help="Submit the programs to a queue without waiting.")
]
Status = Annotated[
    bool, typer.Option("--status", help="Show which runs are done, running, waiting or failed.")
]


def sweep(
    file: File,
    out: OutOfSweep = None,
    device: Device = "auto",
    executor: ExecutorName = "local",
    executor_args: ExecutorArgs = None,
    workers: Workers = None,
    size: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The size to run: quick, or a name under [sizes] in the file."
        ),
    ] = "quick",
    engine: Engine = "auto",
    checkpoint_seconds: CheckpointSeconds = 30.0,
    detach: Detach = False,
    status: Status = False,
    dry_run: DryRun = False,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    strict: Strict = False,
) -> None:
    """Run all cells of a sweep file. Existing records are skipped; failures don't stop the rest."""
    output = Output(style, columns, sort)
    _require_use(output, status=status, dry_run=dry_run, detach=detach)
    sound_host(strict)
    with stops_on_signals(f"to continue: {shlex.join(['iclbench', *sys.argv[1:]])}"):
        from ..files import path_of
        from ..sweeps.cells import by_reason
        from ..sweeps.executor import usable_executor
        from ..sweeps.files import read_sweep_file
        from .sweep_status import print_plan, print_status

        file = _file_of(file)
        sized = read_sweep_file(file).sized(size)
        folder = path_of(out or sized.out)
        given = parse_arguments(executor_args or [], "--executor-args")
        runner, _ = usable_executor(executor, given, out=folder, device=device, workers=workers)
        how: HowToRun = {
            "device": device,
            "engine": engine,
            "checkpoint_seconds": checkpoint_seconds,
        }
        if status or dry_run:
            if (print_status if status else print_plan)(sized, folder, output):
                raise typer.Exit(1)
            return
        require_columns_of_boards(output)
        result = _run(sized, folder, runner, workers, output, detach=detach, how=how)
    problems = []
    if result.records and not detach:
        problems = _show(sized, result, folder, folder / f"{file.stem}.html", output)
    for line in by_reason(result.failures):
        report(f"failed: {line}")
    end_with(problems, 1 if result.failures else 0)


def _require_use(output: Output, *, status: bool, dry_run: bool, detach: bool) -> None:
    """Raise UsageError for an option that would be ignored.

    Both questions are put to the command of a run, whose other options they take.
    """
    if status and dry_run:
        raise UsageError("give either --status or --dry-run, not both")
    if (status or dry_run) and detach:
        asked = "--status" if status else "--dry-run"
        raise UsageError(f"{asked} submits nothing: leave out --detach")
    if detach and not output.is_default:
        raise UsageError("--detach prints no table: leave out --format, --columns and --sort")


def _file_of(given: Path) -> Path:
    """The sweep file itself, or that of the study with this name."""
    from ..leaderboards.studies import find_study
    from ..plugins import host

    if given.suffix == ".toml" or given.is_file():
        return given
    return find_study(given.as_posix(), host()).path


def _run(
    file: SweepFile,
    folder: Path,
    executor: Executor,
    workers: int | None,
    output: Output,
    *,
    detach: bool,
    how: HowToRun,
) -> SweepResult:
    """Run or submit the cells, and show how far they are."""
    from ..display.views import waiting

    with waiting("loading torch"):
        from ..display.progress import progress_of_jobs
        from ..sweeps.sweep import submit_sweep
        from ..sweeps.sweep import sweep as run_sweep

    with progress_of_jobs("reading the records") as display:
        executor.listener = display
        act = submit_sweep if detach else run_sweep
        report = job_reporter(display, output)
        return act(file, out=folder, executor=executor, workers=workers, report=report, **how)


def _show(
    file: SweepFile, result: SweepResult, folder: Path, page: Path, output: Output
) -> list[str]:
    """Print the boards and the sweep's own table, and write its figure to `page`.

    In another format than that of a terminal, the sweep's own table is all that is printed, unless
    columns of boards were asked for. Returns a line for each record that has no row, for what the
    table names and no record has, and for a table or a figure that can't be made.
    """
    from ..display.study import names_of, study_table
    from ..leaderboards.figures.draw import draw
    from ..leaderboards.figures.export import write_page
    from ..runs.store import RecordStore

    problems, table = [], file.table
    is_export = output.style != "table"
    if table is None or not is_export or output.columns or output.sort:
        problems += print_boards_of(result.records, folder, output)
    if table is not None and not (output.columns or output.sort):
        lacking = table.unmatched(names_of(result.records))
        problems += [f"table: no metric of the records matches {name!r}" for name in lacking]
        if len(lacking) < len(table.metrics):
            try:
                rows = study_table(table, result.records, RecordStore(folder))
                if not is_export:
                    typer.echo()
                show_table(rows, output)
            except UsageError as error:
                problems.append(str(error))
    if file.figure is not None:
        try:
            write_page(draw(file.figure, result.records), page)
        except UsageError as error:
            return [*problems, str(error)]
        typer.echo(f"\nfigure: {page}", err=is_export)
    return problems
