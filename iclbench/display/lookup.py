"""Looking entries up: the kinds of a name, the names of a kind, and what goes with what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from ..api.architecture import Architecture
from ..api.errors import PLUGIN_FAILURES, IclbenchError
from ..api.recipe import Recipe
from ..api.task import Task
from ..discovery import CATALOG_HOOKS
from ..plugins import PluginHost


def kinds_of(plugins: PluginHost, name: str) -> list[str]:
    """The kinds that have an entry of this name; a plugin counts where nothing else does."""
    kinds = [
        kind
        for kind in CATALOG_HOOKS
        if any(entry.name == name for _, entry in plugins.entries(kind))
    ]
    if "recipe" not in kinds and tasks_with_recipe(plugins, name):
        kinds.append("recipe")
    if not kinds and any(plugin.name == name for plugin in plugins.plugins):
        kinds.append("plugin")
    return kinds


def known_names(plugins: PluginHost, kind: str | None) -> set[str]:
    """Every name of a kind, or of all kinds, with the recipes of tasks."""
    names = {
        entry.name
        for one_kind in CATALOG_HOOKS
        if kind in {None, one_kind}
        for _, entry in plugins.entries(one_kind)
    }
    if kind in {None, "plugin"}:
        names.update(plugin.name for plugin in plugins.plugins)
    if kind in {None, "recipe"}:
        for _, task in tasks_of(plugins):
            names.update(task.recipes)
    return names


def accepts(supports: Callable[..., str | None], *arguments: Any) -> bool:
    """Whether `supports` has no objection; a plugin's error counts as one here."""
    try:
        return supports(*arguments) is None
    except PLUGIN_FAILURES:
        return False


def has_defaults(config: type[BaseModel]) -> bool:
    """Whether every argument has a default."""
    return not any(field.is_required() for field in config.model_fields.values())


def takes_prompts(architecture: type[Architecture], task: Task[Any]) -> bool:
    """Whether a model with default arguments takes a task's prompts."""
    return has_defaults(architecture.Config) and accepts(
        lambda: architecture().supports(task.signature, architecture.Config())
    )


def default_tasks(plugins: PluginHost) -> Iterator[Task[Any]]:
    """The tasks with default arguments that can be built and have a signature."""
    for _, task in tasks_of(plugins):
        if has_defaults(task.Config):
            try:
                default = task(task.Config())
                _ = default.signature
            except PLUGIN_FAILURES:
                continue  # it is broken, or its defaults lack something, such as a package
            yield default


def example_of(plugins: PluginHost, tasks: Sequence[str]) -> str:
    """The one of these tasks that a suite lists first, else the first of them, else `TASK`."""
    from ..runs.suites import find_suite

    for _, entry in plugins.entries("suite"):
        try:
            on_boards = [board.fields.get("task") for board in find_suite(entry.name).boards]
        except IclbenchError:
            continue  # `iclbench describe suite NAME` says what is wrong
        for task in on_boards:
            if task in tasks:
                return str(task)
    return tasks[0] if tasks else "TASK"


def tasks_of(plugins: PluginHost) -> Iterator[tuple[str, type[Task[Any]]]]:
    """Every task's name and class; broken ones are left out."""
    for _, entry in plugins.entries("task"):
        try:
            yield entry.name, plugins.load("task", entry.name, Task)
        except IclbenchError:
            continue  # `iclbench describe task NAME` says what is wrong


def models_of(plugins: PluginHost) -> Iterator[tuple[str, type[Architecture]]]:
    """Every model's name and class; broken ones are left out."""
    for _, entry in plugins.entries("model"):
        try:
            yield entry.name, plugins.load("model", entry.name, Architecture)
        except IclbenchError:
            continue  # `iclbench describe model NAME` says what is wrong


def tasks_with_recipe(plugins: PluginHost, name: str) -> dict[str, Recipe]:
    """The recipes of that name that tasks have of their own, by the task."""
    return {task: t.recipes[name] for task, t in tasks_of(plugins) if name in t.recipes}
