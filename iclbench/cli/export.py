"""`iclbench export`: a task's prompts as a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..api.options import parse_arguments
from ..console import counted
from .common import Strict, sound_host
from .interruption import stops_on_signals
from .paths import usable_path


def export(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Output folder: new, empty, or from an earlier export.",
            parser=usable_path,
        ),
    ],
    task: Annotated[str, typer.Option(metavar="NAME", help="The task.")],
    prompts: Annotated[int, typer.Option(min=1, metavar="N", help="Prompts per case.")],
    task_args: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V,…", help="Arguments of the task, or @file.toml; repeatable."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Evaluation seed of the prompts.")
    ] = 0,
    dtype: Annotated[
        Literal["float32", "float64"], typer.Option(help="Precision of the prompts.")
    ] = "float32",
    strict: Strict = False,
) -> None:
    """Write a task's evaluation prompts and targets as Parquet, with a card and Croissant metadata.

    `datasets.load_dataset(DIR)` reads the folder; for a task with several cases, such as sizes, the
    card explains how. The same arguments give the same bytes.
    """
    sound_host(strict)
    from ..exchange.task_data import export_task

    args = parse_arguments(task_args or [], "--task-args")
    with stops_on_signals("nothing was written"):
        exported = export_task(task, prompts, out, task_args=args, seed=seed, dtype=dtype)
    for file in exported.files:
        typer.echo(f"{out / file.path}: {counted(file.rows, 'prompt')}, {file.bytes:,} bytes")
    typer.echo(f"digest of the draws: {exported.digest}")
