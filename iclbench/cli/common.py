"""Options and helpers that several verbs share."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..api.budget import Budget
from ..api.errors import IclbenchError, UsageError, unknown
from ..console import report
from ..plugins import PluginHost, host

if TYPE_CHECKING:
    from ..api.spec import ResolvedSpec
    from ..leaderboards.board import Board
    from ..training.gradients.choice import EngineName

#: As in `training.gradients.choice`, which imports torch.
ENGINES = ("auto", "plain", "vmapped", "threaded", "compiled", "graph")

Strict = Annotated[bool, typer.Option("--strict", help="Treat any plugin problem as an error.")]
Out = Annotated[str, typer.Option("--out", metavar="DIR", help="Folder of the records.")]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda[:N]",
        help="Where to run; auto uses a GPU if there is one.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|plain|vmapped|threaded|compiled|graph",
        help="How gradients are computed; auto: the fastest way that agrees with plain.",
    ),
]
SuiteName = Annotated[
    str | None,
    typer.Option("--suite", metavar="NAME|FILE.toml", help="A suite of boards, for --task."),
]
Trials = Annotated[
    int, typer.Option("--trials", min=1, metavar="N", help="Trials of a tuning, per board.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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


def engine_name(name: str) -> EngineName:
    """Return the engine of that name; raises UsageError for an unknown one."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    return cast("EngineName", name)


def exit_code(error: Exception) -> int:
    """The exit code for an error of a run."""
    return error.exit_code if isinstance(error, IclbenchError) else 1


def training_cost(spec: ResolvedSpec) -> str:
    """What a training takes: its seeds, and the steps or the budget of each."""
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) != 1 else ''}"
    if spec.budget is None:
        return f"{seeds} for {spec.recipe_args.get('steps')} steps"
    budget = Budget.parse(spec.budget)
    total = budget.times(len(spec.seeds))
    return f"{seeds} for {budget} of {budget.kind} each, {total} in all"


def record_paths(given: list[Path]) -> list[Path]:
    """The given records, and those in the given folders; raises UsageError for an empty folder.

    The trials of tunings, which lie beside the records, are left out.
    """
    from ..runs.store import is_record_name
    from ..sweeps.tuning.search import FOLDER as TRIALS

    paths = []
    for path in given:
        records = [path]
        if path.is_dir():
            found = [p for p in sorted(path.rglob("*.json")) if is_record_name(p)]
            records = [p for p in found if TRIALS not in p.relative_to(path).parts[:-1]]
        if not records:
            raise UsageError(f"there are no records in {path}")
        paths += records
    return paths


def end_with(problems: Sequence[str]) -> None:
    """Report what was left out, a line each, and exit with 2 if there is anything."""
    for problem in problems:
        report(f"error: {problem}")
    if problems:
        raise typer.Exit(2)


def chosen_sample(paths: list[Path], count: int) -> list[Path]:
    """`count` of the records, spread evenly over their folders; always the same ones."""
    folders: dict[Path, list[Path]] = {}
    for path in sorted(paths, key=lambda p: hashlib.sha256(p.name.encode()).digest()):
        folders.setdefault(path.parent, []).append(path)
    turns = itertools.zip_longest(*(folders[folder] for folder in sorted(folders)))
    ordered = [path for turn in turns for path in turn if path is not None]
    return sorted(ordered[:count])


def print_boards(boards: Sequence[Board], style: str = "simple", commands: bool = False) -> None:
    """Print tables, as wide as the terminal if there is one, each row's command, and a legend."""
    from ..leaderboards.tables import legend, render

    # Without a standard output, as under some services, `sys.stdout` is None.
    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    for board in boards:
        typer.echo("\n" + render(board, style, width))
        if commands:
            typer.echo("\n" + "\n".join(f"    {record.command}" for record in board.records))
    if boards:
        typer.echo("\n" + legend(boards, width))
