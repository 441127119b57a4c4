"""Entries described as documentation: what one is, its arguments, and a command to start with."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..api.architecture import Architecture, Solver
from ..api.errors import PLUGIN_FAILURES, reason_of
from ..api.executor import Executor
from ..api.grader import Grader
from ..api.metric import Metric
from ..api.recipe import Recipe
from ..api.task import Task
from ..api.tracker import Tracker
from ..console import capitalized, counted
from ..discovery import Plugin
from ..leaderboards.arguments import argument_pairs
from ..nn.architecture import SequenceArchitecture
from ..plugins import PluginHost
from ..runs.state_size import describe_state
from .arguments import arguments_table, changed, facts_table, recipe_summary, settings_table
from .lookup import (
    accepts,
    default_tasks,
    example_of,
    has_defaults,
    models_of,
    takes_prompts,
    tasks_with_recipe,
)
from .table import Column, Table

#: A paragraph, or a table.
Part = str | Table


def describe(plugins: PluginHost, kind: str, name: str) -> Iterator[Part]:
    """The page of an entry; raises UsageError for an unknown name, PluginError for a broken one."""
    if kind == "plugin":
        yield from _plugin(next(p for p in plugins.plugins if p.name == name))
        return
    if kind == "recipe" and all(entry.name != name for _, entry in plugins.entries(kind)):
        yield from _recipe_of_tasks(plugins, name)
        return
    plugin, entry = plugins.provider(kind, name)
    yield f"{name}: {kind} of the plugin {plugin.label}"
    yield (summary := _sentence(entry.summary))
    yield from (part for part in PAGES[kind](plugins, name) if part != summary)


def _sentence(text: str) -> str:
    return f"{capitalized(text)}{'' if text.endswith(('.', ')')) else '.'}"


def _documentation(target: type) -> Iterator[str]:
    """The paragraphs of a class's own docstring; an item of a list starts a line."""
    text = inspect.cleandoc(target.__doc__ or "")
    for part in filter(None, map(str.strip, text.split("\n\n"))):
        yield "\n".join(" ".join(item.split()) for item in re.split(r"\n(?=- )", part))


def _model(plugins: PluginHost, name: str) -> Iterator[Part]:
    target: type[Architecture] = plugins.load("model", name, Architecture)
    yield from _documentation(target)
    if issubclass(target, Solver) and target.chance:
        yield "Its predictions ignore the examples: its row is the board's chance level."
    yield from _arguments(target.Config, "--model-args")
    if issubclass(target, SequenceArchitecture):
        _, entry = plugins.provider("model", name)
        yield f"Its mixer in hybrids: {entry.mixer or name}."
    yield from _state(target)
    for key, construction in target.constructions.items():
        yield f"--weights {key}: {construction.summary}"
        yield from _arguments(construction.Config, "--weights-args")
    tasks = [task.name for task in default_tasks(plugins) if takes_prompts(target, task)]
    if tasks:
        yield f"With default arguments it runs on {', '.join(tasks)}."
    command = f"$ iclbench run --model {name} --task {example_of(plugins, tasks)}"
    yield command + _required(target.Config, "--model-args")


def _state(target: type[Architecture]) -> Iterator[str]:
    """The state of each layer by default, if the model tells it."""
    if not has_defaults(target.Config):
        return
    try:
        text = describe_state(target(), target.Config())
    except PLUGIN_FAILURES:  # or its defaults name a model that is not installed
        return
    if text is not None:
        yield f"State of each layer, with default arguments in float32: {text}."


def _task(plugins: PluginHost, name: str) -> Iterator[Part]:
    target: type[Task[Any]] = plugins.load("task", name, Task)
    yield from _documentation(target)
    models: list[str] = []
    try:
        task = target(target.Config())
        yield facts_table(_facts(task))
        models = [model for model, its in models_of(plugins) if takes_prompts(its, task)]
    except PLUGIN_FAILURES as error:
        # The message of a ValueError, such as a required argument, says enough.
        reason = str(error) if isinstance(error, ValueError) else reason_of(error)
        yield f"Version {target.version}. With default arguments: {reason}"
    yield from _arguments(target.Config, "--task-args")
    if target.recipes:
        rows = [
            {
                "recipe": key,
                "training": recipe_summary(recipe),
                # Tasks share recipes, and each takes what it has.
                "task": argument_pairs(
                    {n: v for n, v in recipe.task_args.items() if n in target.Config.model_fields}
                ),
                "model": argument_pairs(recipe.model_args),
            }
            for key, recipe in target.recipes.items()
        ]
        columns = (
            Column("recipe"),
            Column("training", fit="wrap"),
            Column("task", label="task arguments", fit="wrap"),
            Column("model", label="model arguments", fit="wrap"),
        )
        title = "Recipes of this task (iclbench describe recipe NAME)"
        yield Table(columns, rows, title=title)
    if models:
        yield f"With default arguments these models run on it: {', '.join(models)}."
    yield f"$ iclbench run --model MODEL --task {name}" + _required(target.Config, "--task-args")


def _facts(task: Task[Any]) -> Iterator[tuple[str, str]]:
    signature = task.signature
    yield "version", str(task.version)
    yield "ranked by", f"the {task.statistic} of {task.primary.metric}"
    yield "floor", f"{task.floor_kind}. {task.floor_summary}".rstrip(". ")
    fields = ", ".join(f"{n} {'×'.join(map(str, s)) or '1'}" for n, s in signature.shapes.items())
    yield "prompt", f"{signature.prompt.__name__}: {fields}".rstrip(": ")
    width = f"{counted(signature.input_width, 'number')} each" if signature.input_width else "ids"
    yield "as a sequence", f"{signature.length} positions, {width}"
    places = len(signature.readout)
    where = f"at {places} positions" if places > 1 else "at one position"
    what = f"{signature.classes} classes" if signature.classes else ""
    what = what or (f"{signature.vocabulary} ids" if signature.vocabulary else "")
    shape = what or counted(signature.output_width, "number")
    yield "answer", f"{signature.target}: {shape}, {where}"
    yield "causal", "yes: later tokens hold the answers of earlier ones" * signature.causal
    yield "sizes", "vary: prompts may also be smaller" * signature.varies
    yield "shifts", ", ".join(task.shifts)


def _recipe(plugins: PluginHost, name: str) -> Iterator[Part]:
    yield settings_table(changed(plugins.load("recipe", name, Recipe)), Recipe)
    yield from _recipe_notes(name)


def _recipe_notes(name: str) -> Iterator[str]:
    yield "All other settings have their defaults; --recipe-args changes any of them."
    yield f"$ iclbench run --model MODEL --task TASK --recipe {name}"


def _recipe_of_tasks(plugins: PluginHost, name: str) -> Iterator[Part]:
    """A recipe that tasks have of their own: each version of it once."""
    versions: list[tuple[Recipe, list[str]]] = []
    for task, recipe in tasks_with_recipe(plugins, name).items():
        same = next((tasks for known, tasks in versions if known == recipe), None)
        if same is None:
            versions.append((recipe, [task]))
        else:
            same.append(task)
    yield f"{name}: recipe of single tasks"
    for recipe, tasks in versions:
        yield settings_table(changed(recipe), Recipe, f"For {', '.join(tasks)}")
    yield from _recipe_notes(name)


def _suite(plugins: PluginHost, name: str) -> Iterator[Part]:
    from ..runs.suites import find_suite

    suite = find_suite(name)
    rows = []
    for board in suite.boards:
        request = board.request("MODEL")
        training = [request.budget or request.recipe, argument_pairs(request.recipe_args)]
        rows.append({
            "board": board.name,
            "task": request.task,
            "arguments": argument_pairs(request.task_args),
            "dtype": request.dtype,
            "training": ", ".join(filter(None, training)),
            "seeds": len(request.seeds),
            "prompts": request.eval_prompts,
            "chance": board.chance,
            "reference": board.reference or "floor or best",
            "command": request.command(),
        })  # fmt: skip
    columns = (
        Column("board"),
        Column("task", importance=6),
        Column("arguments", fit="wrap", importance=4),
        Column("dtype", importance=3),
        Column("training", fit="wrap", importance=5),
        Column("seeds", right=True, importance=7),
        Column("prompts", right=True, importance=8),
        Column("chance"),
        Column("reference"),
        Column("command", fit="wrap", extra=True),
    )
    yield Table(columns, rows, title=f"Version {suite.version}: {counted(len(rows), 'board')}")
    yield (
        "A score is 0 for the solver in the column chance. It is 1 for the task's floor; without a "
        "floor, for the solver in the column reference; without either, for the best row."
    )
    yield f"$ iclbench run --model MODEL --suite {name}"


def _metric(plugins: PluginHost, name: str) -> Iterator[Part]:
    target: type[Metric] = plugins.load("metric", name, Metric)
    yield from _documentation(target)
    tasks = [task.name for task in default_tasks(plugins) if accepts(target().supports, task)]
    if tasks:
        yield f"With default arguments it applies to {', '.join(tasks)}."
    yield f"$ iclbench run --model MODEL --task {example_of(plugins, tasks)} --metrics {name}"


def _grader(plugins: PluginHost, name: str) -> Iterator[Part]:
    target: type[Grader] = plugins.load("grader", name, Grader)
    yield from _documentation(target)
    yield from ["It costs money: set --grader-budget."] if target.paid else []
    yield from _arguments(target.Config, "--grader-args")
    yield f"$ iclbench run --model MODEL --task TASK --grader {name}"


def _executor(plugins: PluginHost, name: str) -> Iterator[Part]:
    target: type[Executor] = plugins.load("executor", name, Executor)
    yield from _documentation(target)
    yield from _arguments(target.Config, "--executor-args")
    yield f"$ iclbench sweep FILE --executor {name} --workers N"


def _tracker(plugins: PluginHost, name: str) -> Iterator[Part]:
    target: type[Tracker] = plugins.load("tracker", name, Tracker)
    yield from _documentation(target)
    yield from _arguments(target.Config, "--tracker-args")
    yield f"$ iclbench run --model MODEL --task TASK --tracker {name}"


def _command(plugins: PluginHost, name: str) -> Iterator[Part]:
    yield f"$ iclbench {name} --help"


def _plugin(plugin: Plugin) -> Iterator[Part]:
    yield f"{plugin.name}: plugin of {plugin.distribution} {plugin.version}"
    if plugin.problem:
        yield f"It is left out: {plugin.problem}"
    yield f"It is imported from {plugin.module}."
    rows = [
        {"kind": kind, "name": entry.name, "summary": entry.summary}
        for kind, entries in plugin.entries.items()
        for entry in entries
    ]
    yield Table((Column("kind"), Column("name"), Column("summary", fit="wrap")), rows)


def _arguments(config: Any, option: str) -> Iterator[Part]:
    if config.model_fields:
        yield arguments_table(config, f"Arguments ({option} NAME=VALUE,…)")


def _required(config: Any, option: str) -> str:
    """The part of a command that gives the arguments without a default; empty if all have one."""
    names = [name for name, field in config.model_fields.items() if field.is_required()]
    return f" {option} {','.join(f'{name}=VALUE' for name in names)}" if names else ""


PAGES: dict[str, Callable[[PluginHost, str], Iterator[Part]]] = {
    "model": _model,
    "task": _task,
    "recipe": _recipe,
    "suite": _suite,
    "metric": _metric,
    "grader": _grader,
    "executor": _executor,
    "tracker": _tracker,
    "command": _command,
}
