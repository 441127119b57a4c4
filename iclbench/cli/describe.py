"""`iclbench describe NAME`: the arguments of an entry, or the boards of a suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import unknown
from .common import Strict, sound_host

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..api.architecture import Architecture
    from ..plugins import PluginHost

KINDS = ("model", "task", "recipe", "suite", "metric", "grader")


def describe(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] NAME",
            help=f"Name of an entry, after its kind if several have the name: {', '.join(KINDS)}.",
        ),
    ],
    strict: Strict = False,
) -> None:
    """Describe a model, task, recipe, metric or grader and its arguments, or a suite's boards."""
    *before, name = words
    if len(before) > 1 or (before and before[0] not in KINDS):
        raise unknown("kind", before[0], KINDS)
    plugins = sound_host(strict)
    names = {kind: [e.name for _, e in plugins.entries(kind)] for kind in KINDS}
    searched = before or KINDS
    kinds = [kind for kind in searched if name in names[kind]]
    if not kinds:
        raise unknown("name", name, [known for kind in searched for known in names[kind]])
    for kind in kinds:
        for line in _lines(plugins, kind, name):
            typer.echo(line)


def _lines(plugins: PluginHost, kind: str, name: str) -> Iterator[str]:
    from ..api.architecture import Architecture
    from ..api.grader import Grader
    from ..api.metric import Metric
    from ..api.recipe import Recipe
    from ..api.task import Task
    from ..nn.architecture import SequenceArchitecture

    plugin, entry = plugins.provider(kind, name)
    yield f"{kind} {name}, of {plugin.label}"
    yield f"  {entry.summary}"
    if kind == "suite":
        yield from _boards(name)
        return
    bases: dict[str, type] = {
        "model": Architecture,
        "task": Task,
        "recipe": Recipe,
        "metric": Metric,
        "grader": Grader,
    }
    target = plugins.load(kind, name, bases[kind])
    if kind == "recipe":
        yield from (f"    {field} = {value!r}" for field, value in target.model_dump().items())
        return
    if kind == "metric":
        return
    yield f"  --{kind}-args:"
    yield from _fields(target.Config)
    if kind == "task":
        yield f"  version {target.version}"
        if not any(field.is_required() for field in target.Config.model_fields.values()):
            task = target(target.Config())
            yield f"  ranked by the {task.statistic} of {task.primary.metric}"
            yield f"  floor ({task.floor_kind}): {task.floor_summary or 'not described'}"
            yield f"  {task.signature}"
        yield from (f"  recipe {key}: {recipe!r}" for key, recipe in target.recipes.items())
    elif kind == "model":
        if issubclass(target, SequenceArchitecture):
            yield f"  mixer in hybrids: {entry.mixer or name}"
        yield from _state(target)
        for key, construction in target.constructions.items():
            yield f"  --weights {key}: {construction.summary}"
            yield from _fields(construction.Config)


def _state(architecture: type[Architecture]) -> Iterator[str]:
    """The state of each layer by default, if the model tells it."""
    from ..api.errors import UsageError
    from ..runs.state_size import describe_state

    if any(field.is_required() for field in architecture.Config.model_fields.values()):
        return
    try:
        text = describe_state(architecture(), architecture.Config())
    except UsageError:  # the defaults name another model, which is not installed
        return
    if text is not None:
        yield f"  state of each layer (float32, defaults): {text}"


def _boards(name: str) -> Iterator[str]:
    """The boards of a suite: the runs that they are, and what their scores refer to."""
    from ..runs.suites import find_suite

    suite = find_suite(name)
    yield f"  version {suite.version}"
    for board in suite.boards:
        request = board.request("MODEL")
        yield f"  {board.name}: {request.command()}"
        reference = "the floor, or else " + (board.reference or "the best row")
        yield f"    scored from {board.chance} (0) to {reference} (1)"


def _fields(config: type[BaseModel]) -> Iterator[str]:
    for name, field in config.model_fields.items():
        annotation: Any = field.annotation
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        shown = text.replace("typing.", "")
        default = "(required)" if field.is_required() else f"= {field.default!r}"
        yield f"    {name} ({shown}) {default}  {field.description or ''}".rstrip()
