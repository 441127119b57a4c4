"""`iclbench describe NAME`: the arguments that a model, task, recipe or grader takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import unknown
from .common import Strict, sound_host

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..plugins import PluginHost


def describe(
    name: Annotated[str, typer.Argument(help="A model, task, recipe, metric or grader.")],
    strict: Strict = False,
) -> None:
    """Show what a model, task, recipe, metric or grader is and which arguments it takes."""
    found = sound_host(strict)
    kinds = ("model", "task", "recipe", "metric", "grader")
    holding = [kind for kind in kinds if name in {e.name for _, e in found.entries(kind)}]
    if not holding:
        raise unknown("name", name, [e.name for kind in kinds for _, e in found.entries(kind)])
    for kind in holding:
        for line in _lines(found, kind, name):
            typer.echo(line)


def _lines(found: PluginHost, kind: str, name: str) -> Iterator[str]:
    from ..api.architecture import Architecture
    from ..api.grader import Grader
    from ..api.metric import Metric
    from ..api.recipe import Recipe
    from ..api.task import Task

    plugin, entry = found.provider(kind, name)
    yield f"{kind} {name}, of {plugin.label}"
    yield f"  {entry.summary}"
    bases: dict[str, type] = {
        "model": Architecture,
        "task": Task,
        "recipe": Recipe,
        "metric": Metric,
        "grader": Grader,
    }
    thing = found.load(kind, name, bases[kind])
    if kind == "recipe":
        yield from (f"    {field} = {value!r}" for field, value in thing.model_dump().items())
        return
    if kind == "metric":
        return
    yield f"  --{kind}-args:"
    yield from _fields(thing.Config)
    if kind == "task":
        yield f"  version {thing.version}"
        if not any(field.is_required() for field in thing.Config.model_fields.values()):
            made = thing(thing.Config())
            yield f"  ranked by the {made.primary.statistic} {made.primary.metric}"
            yield f"  {made.signature}"
        yield from (f"  recipe {key}: {recipe!r}" for key, recipe in thing.recipes.items())
    elif kind == "model":
        for key, construction in thing.constructions.items():
            yield f"  --weights {key}: {construction.summary}"
            yield from _fields(construction.Config)


def _fields(config: type[BaseModel]) -> Iterator[str]:
    for name, field in config.model_fields.items():
        kind: Any = field.annotation
        text = getattr(kind, "__name__", None) if isinstance(kind, type) else str(kind)
        shown = str(text).replace("typing.", "")
        default = "(required)" if field.is_required() else f"= {field.default!r}"
        yield f"    {name} ({shown}) {default}  {field.description or ''}".rstrip()
