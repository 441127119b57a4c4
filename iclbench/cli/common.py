"""Options and helpers that several verbs share."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from ..api.errors import IclbenchError, UsageError
from ..console import Reporter, report
from ..display.table import AS_TABLE, Format, Output, joined
from ..files import LEADERBOARDS, RECORDS, STAGING
from ..plugins import PluginHost, host
from ..sweeps.record_paths import beside_records
from ..sweeps.tuning.trials import MOST_TRIALS
from .paths import path_text

if TYPE_CHECKING:
    from ..display.progress import ProgressDisplay
    from ..display.table import Table

#: As in `training.gradients.choice`, which imports torch.
EngineName = Literal["auto", "plain", "vmapped", "threaded", "compiled", "graph"]

#: The folder of records where there is no other, and that of the published ones in a clone.
RESULTS, PUBLISHED = Path("results"), Path(LEADERBOARDS, RECORDS)


def complete_names(*kinds: str) -> Callable[[str], list[str]]:
    """Completes the last of names that are separated by commas, from the plugins' entries."""

    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",")
        names = {entry.name for kind in kinds for _, entry in host().entries(kind)}
        return [f"{before}{comma}{name}" for name in sorted(names)]

    return complete


Strict = Annotated[bool, typer.Option("--strict", help="Treat any plugin problem as an error.")]
Out = Annotated[
    str, typer.Option("--out", metavar="DIR", help="Folder for the records.", parser=path_text)
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda[:N]",
        help="Device to run on; auto uses a GPU if available.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Read the files and Hugging Face datasets, and import the optimizers, that records "
        "name, and let them take over half an hour. Only for records of people whom you trust.",
    ),
]
Engine = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        metavar="|".join(get_args(EngineName)),
        help="How to compute gradients; auto picks the fastest engine that agrees with plain.",
    ),
]
SuiteName = Annotated[
    str | None,
    typer.Option(
        "--suite",
        metavar="NAME|FILE.toml",
        help="A suite of boards, instead of --task.",
        autocompletion=complete_names("suite"),
    ),
]
Trials = Annotated[
    int,
    typer.Option("--trials", min=1, max=MOST_TRIALS, metavar="N", help="Tuning trials per board."),
]
ExecutorName = Annotated[
    str, typer.Option("--executor", metavar="NAME", help="The executor that runs the programs.")
]
ExecutorArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--executor-args", metavar="K=V,…", help="Arguments of the executor, or @file.toml."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Number of programs to run at once, each in its own process. [default: 1 locally]",
        show_default=False,
    ),
]
CheckpointSeconds = Annotated[
    float,
    typer.Option(
        "--checkpoint-seconds", min=0, metavar="SECONDS", help="Time between training checkpoints."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Same as --format json.")]
Style = Annotated[
    Format, typer.Option("--format", metavar="|".join(get_args(Format)), help="Output format.")
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAME[,NAME]|all", help="Columns to show, in this order."),
]
Sort = Annotated[
    str | None,
    typer.Option("--sort", metavar="[-]COLUMN", help="Column to sort by; with -, largest first."),
]


def sound_host(strict: bool) -> PluginHost:
    """The plugin host; problems are reported on one line, or raised if `strict`."""
    plugins = host()
    if strict:
        plugins.require_sound()
    problems = plugins.problems
    if len(problems) > 1:
        report(f"{len(problems)} problems with plugins; `iclbench plugins` lists them")
    elif problems:
        report(problems[0])
    return plugins


def exit_code(error: BaseException) -> int:
    """The exit code for an error of a run."""
    return error.exit_code if isinstance(error, IclbenchError) else 1


def records_folders(folders: Sequence[Path] | None, out: Path | None) -> list[Path]:
    """The folders of records to show, each once; raises UsageError if one is missing."""
    given = [*(folders or []), *([out] if out is not None else [])]
    return list(dict.fromkeys(map(records_folder, given))) if given else [records_folder(None)]


def records_folder(given: Path | None) -> Path:
    """The folder of records to show; raises UsageError if there is none."""
    from ..runs.store import folder_of_records

    if given is None:
        if not RESULTS.is_dir() and PUBLISHED.is_dir():
            report(f"there is no folder {RESULTS} yet: showing the records of {PUBLISHED}")
            return PUBLISHED
        if not RESULTS.is_dir():
            raise UsageError(f"there is no folder {RESULTS}; give a folder of records")
        given = RESULTS
    folder = folder_of_records(given)
    _say_left_out(folder)
    return folder


def _say_left_out(folder: Path) -> None:
    """Say where records lie one level too deep, as in a folder of several runs' folders."""
    from ..runs.store import is_record_name

    inner = sorted({path.parents[1] for path in folder.glob("*/*/*.json") if is_record_name(path)})
    for one in inner:
        if one.name not in beside_records() and not one.name.startswith(STAGING):
            report(f"the records below {one} are not included: give that folder as well")


def options_given(context: typer.Context) -> dict[str, str]:
    """The options and arguments that the user set, by the parameter's name: how it is written."""
    written = {}
    for parameter in context.command.params:
        name = parameter.name
        source = None if name is None else context.get_parameter_source(name)
        if name is not None and source is not None and source.name != "DEFAULT":
            is_off = context.params.get(name) is False and parameter.secondary_opts
            written[name] = (parameter.secondary_opts if is_off else parameter.opts)[0]
    return written


def end_with(problems: Sequence[str], code: int = 0) -> None:
    """Report what was left out, a line each; exit with `code`, or with 2 if anything was."""
    for problem in problems:
        report(f"error: {problem}")
    if code or problems:
        raise typer.Exit(code or 2)


def chosen_sample(paths: list[Path], count: int) -> list[Path]:
    """`count` of the records, spread evenly over their folders; always the same ones."""
    folders: dict[Path, list[Path]] = {}
    for path in sorted(paths, key=lambda p: hashlib.sha256(p.name.encode()).digest()):
        folders.setdefault(path.parent, []).append(path)
    turns = itertools.zip_longest(*(folders[folder] for folder in sorted(folders)))
    ordered = [path for turn in turns for path in turn if path is not None]
    return sorted(ordered[:count])


def job_reporter(display: ProgressDisplay, output: Output) -> Reporter:
    """Where a line per finished job goes.

    Beside a display it is the display's; beside tables for other programs it is no output.
    """
    from ..display.views import on_terminal

    return display.line if on_terminal() or not output.is_default else typer.echo


def show_table(table: Table, output: Output = AS_TABLE) -> None:
    """Print a table as the options ask for; raises UsageError for an unknown column."""
    from ..display.terminal import write_table

    write_table(table.arranged(output), output.style)


def show_tables(tables: Sequence[Table], output: Output) -> None:
    """Print tables below one another; as one where that is CSV or JSON, or columns were asked for.

    Raises UsageError for an unknown column.
    """
    if output.style in {"csv", "json"} or output.columns or output.sort:
        tables = [joined(tables)]
    for number, table in enumerate(tables):
        if number:
            typer.echo()
        show_table(table, output)
