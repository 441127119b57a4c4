"""Whether a model takes the arguments that recipes of tasks set by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..api.architecture import Architecture
from ..api.config import Config
from ..api.recipe import Recipe
from ..api.task import Task
from ..plugins import host
from ..runs.checks import expect
from ..runs.code import HARNESS
from ..runs.recipe_arguments import refusal, split_by_use
from .trials import all_tasks, small_config


def check_recipe_args(architecture: type[Architecture], of: str = "") -> str:
    """Raise ConformanceError for recipes whose arguments don't fit together; say what was tried.

    A recipe's `model_args` reach every model that has arguments of these names. Where the model
    refuses a value, whatever else is set, it keeps its default; what is returned names these
    arguments. Tried are the recipes of the harness and of the distribution `of`, on the tasks that
    the model supports.
    """
    config, tried = small_config(architecture), 0
    left_out: dict[str, None] = {}
    for label, recipe in _recipes(architecture, config, of):
        taken, refused = split_by_use(
            architecture.of_recipe(recipe.model_args), architecture.Config, {}
        )
        reason = refusal(architecture.Config, taken)
        shown = ", ".join(f"{name}={value!r}" for name, value in taken.items())
        name = architecture.Config.__name__
        expect(reason is None, f"{label} sets {shown}, which {name} refuses ({reason})")
        left_out |= dict.fromkeys(refused)
        tried += 1
    suffix = f"; left out, since it refuses them: {', '.join(left_out)}" if left_out else ""
    return f"the arguments that {tried} recipes set{suffix}"


def _recipes(
    architecture: type[Architecture], config: Config, of: str
) -> Iterator[tuple[str, Recipe]]:
    """Every recipe that may train the model, with its name in messages."""
    near = {HARNESS, of}
    for plugin, entry in host().entries("recipe"):
        if plugin.distribution in near:
            yield f"recipe {entry.name}", host().load("recipe", entry.name, Recipe)
    for task in all_tasks(of):
        if host().provider("task", task.name)[0].distribution in near and _supports(
            architecture, task, config
        ):
            for name, recipe in task.recipes.items():
                yield f"recipe {name} of {task.name}", recipe


def _supports(architecture: type[Architecture], task: Task[Any], config: Config) -> bool:
    return architecture().supports(task.signature, config) is None
