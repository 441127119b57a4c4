"""What several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

from ..plugins import PluginHost, host, report

Strict = Annotated[bool, typer.Option("--strict", help="Make any plugin problem an error.")]
Out = Annotated[str, typer.Option("--out", metavar="DIR", help="Folder of the records.")]
Device = Annotated[
    str,
    typer.Option("--device", metavar="auto|cpu|cuda[:N]", help="Where to run; auto: a GPU if any."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def sound_host(strict: bool) -> PluginHost:
    """The plugins; problems are reported, or with `strict` raised."""
    found = host()
    if strict:
        found.require_sound()
    for problem in found.problems:
        report(problem)
    return found
