"""`iclbench features`: the features of images by a frozen backbone, in a folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import Progress

from .sources import EMOJI_TEST, FONT

#: Seconds between two lines without a terminal.
PLAIN_SECONDS = 10.0


Data = Annotated[
    str,
    typer.Option(
        metavar="emoji|FOLDER|HUB-ID|imagenet-1k",
        help="Emoji, a folder with one folder of images per class (or with IDX or Parquet "
        "files), or a data set on the hub.",
    ),
]
Backbone = Annotated[
    str,
    typer.Option(metavar="NAME", help="efficientnet-lite0, pixels, or a torchvision model."),
]


def features(
    data: Data,
    backbone: Backbone,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the features.")],
    split: Annotated[
        str, typer.Option(metavar="NAME", help="Split of IDX files, Parquet files or the hub.")
    ] = "train",
    per_class: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Use only the first images of each class."),
    ] = None,
    project: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of dimensions of a random projection."),
    ] = None,
    dtype: Annotated[
        Literal["float16", "float32"], typer.Option(help="Dtype of the stored features.")
    ] = "float16",
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Images per batch.")] = 64,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda[:N]", help="Device that the backbone runs on.")
    ] = "auto",
    font: Annotated[Path, typer.Option(metavar="FILE", help="The emoji's font.")] = FONT,
    emoji_test: Annotated[
        Path, typer.Option(metavar="FILE", help="The emoji's subgroups.")
    ] = EMOJI_TEST,
    checkpoint_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Seconds between parts on disk.")
    ] = 30.0,
    force: Annotated[bool, typer.Option("--force", help="Replace existing features.")] = False,
) -> None:
    """Extract the features of images by a frozen backbone, for the task imagenet.

    Run the same command again after an interruption: it continues and gives the same file.
    """
    import torch

    from iclbench import find_device, full_precision, require_writable

    from .backbones import find_backbone
    from .extraction import Extraction
    from .sources import find_source

    where = find_device(device)
    source = find_source(data, split, font, emoji_test)
    with full_precision(torch.float32):
        work = Extraction(
            source,
            find_backbone(backbone, where),
            out,
            batch=batch,
            per_class=per_class,
            project=project,
            dtype=getattr(torch, dtype),
            checkpoint_seconds=checkpoint_seconds,
        )
        require_writable(out)
        with _Display() as display:
            sha256 = work.run(display.report, force)
    typer.echo(f"{out}: {len(work.rows())} images of {len(source.classes)} classes, {sha256}")


class _Display:
    """A progress bar on a terminal, otherwise a line now and then."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.progress = Progress(console=self.console, transient=True)
        self.bar = self.progress.add_task("images", total=None)
        self.last_line: float | None = None

    def __enter__(self) -> _Display:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self.progress.stop()

    def report(self, done: int, total: int) -> None:
        """Show the number of finished images."""
        now = time.monotonic()
        if self.console.is_terminal:
            self.progress.update(self.bar, completed=done, total=total)
        elif self.last_line is None or now - self.last_line >= PLAIN_SECONDS or done == total:
            self.last_line = now
            self.console.print(f"{done} of {total} images", highlight=False)
