"""The checks that the kit makes of each kind of entry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from ..api.architecture import Architecture, Solver
from ..api.asked import Asked
from ..api.errors import PLUGIN_FAILURES, UnsupportedError, UsageError, reason_of
from ..api.metric import Metric
from ..api.prompts import Target
from ..api.recipe import Recipe
from ..api.task import Task
from ..console import counted
from ..plugins import host
from ..runs.checks import check_architecture, expect
from ..runs.suites import find_suite
from .declarations import check_declared, check_replicas_of_model
from .parts import (
    check_command,
    check_config,
    check_metric,
    check_recipe,
    check_search_args,
)
from .recipes import check_recipe_args
from .services import executor_checks, grader_checks, tracker_checks
from .suites import check_suite
from .tasks import check_task
from .trials import (
    STEPS,
    Checks,
    NotCheckedError,
    all_tasks,
    distribution_of,
    models_for,
    require_defaults,
    small_config,
    tasks_for,
    tiny_run,
    trainable,
)


def checks_of_entry(kind: str, name: str) -> Checks:
    """The checks of one entry; raises whatever loading it raises."""
    yield from CHECKS.get(kind, _any_kind)(kind, name)


def _model(kind: str, name: str) -> Checks:
    def arguments() -> str:
        check_config((model := host().load(kind, name, Architecture)).Config, model.replica_args)
        check_search_args(model)
        return "described, and the same after JSON"

    def module() -> str:
        architecture = host().load(kind, name, Architecture)
        config = small_config(architecture)
        tasks = tasks_for(architecture(), config, distribution_of(kind, name))
        expect(bool(tasks), "it supports no installed task with its default arguments")
        for task in tasks:
            try:
                check_architecture(architecture(), task, config)
                check_replicas_of_model(architecture(), task, config)
            except PLUGIN_FAILURES as error:
                expect(False, f"on {task.name}: {reason_of(error)}")
        return f"on {', '.join(task.name for task in tasks)}"

    def training() -> str:
        architecture = host().load(kind, name, Architecture)
        if issubclass(architecture, Asked):
            raise NotCheckedError("it would query a language model")
        of = distribution_of(kind, name)
        tasks = tasks_for(architecture(), small_config(architecture), of)
        expect(bool(tasks), "it supports no installed task with its default arguments")
        # A record of the shortest prompts shows as much as any other.
        task = min(tasks, key=lambda task: task.signature.length)
        record = tiny_run(architecture, task.name)
        return f"{record.spec.origin}, on {task.name}; its record verifies"

    def recipes() -> str:
        return check_recipe_args(host().load(kind, name, Architecture), distribution_of(kind, name))

    yield "arguments", arguments
    yield "module", module
    yield "run", training
    if not issubclass(host().load(kind, name, Architecture), Solver | Asked):
        yield "recipes", recipes
    for weights in host().load(kind, name, Architecture).constructions:
        yield f"weights {weights}", partial(_construction, name, weights)


def _construction(name: str, weights: str) -> str:
    """A construction conforms if some task takes it and its record verifies."""
    architecture = host().load("model", name, Architecture)
    construction = architecture.constructions[weights]
    require_defaults(construction.Config)
    refusals = []
    for task in all_tasks(distribution_of("model", name)):
        try:
            construction.build(task.signature, construction.Config(), task)
        except UsageError as error:
            refusals.append(f"{task.name}: {reason_of(error)}")
            continue
        # What it builds must fit the model; only the model may still refuse the task.
        try:
            tiny_run(architecture, task.name, weights=weights, model_args={}, seeds=1)
        except UnsupportedError as error:
            refusals.append(f"{task.name}: {reason_of(error)}")
        else:
            return f"on {task.name}; its record verifies"
    reason = refusals[0] if refusals else "no task is installed"
    raise NotCheckedError(f"no installed task accepts it with its defaults; {reason}")


def _task(kind: str, name: str) -> Checks:
    def arguments() -> str:
        check_config((task := host().load(kind, name, Task)).Config, task.replica_args)
        return "described, and the same after JSON"

    def prompts() -> str:
        task = _task_of(name)
        check_task(task)
        check_declared(task)
        shifts = f", {counted(len(task.shifts), 'shift')}" if task.shifts else ""
        text = f"version {task.version}, floor: {task.floor_kind}{shifts}"
        if task.signature.target in get_args(Target):
            return text
        return f"{text}; no shipped solver answers its target {task.signature.target!r}"

    def training() -> str:
        model = next(models_for(_task_of(name), distribution_of(kind, name)), None)
        if model is None:
            raise NotCheckedError("no installed model supports it")
        tiny_run(model, name)
        return f"{model.name}; its record verifies"

    yield "arguments", arguments

    def recipe(key: str) -> str:
        check_recipe(host().load(kind, name, Task).recipes[key])
        return "its optimizer takes its arguments"

    yield "prompts", prompts
    yield "run", training
    for key in host().load(kind, name, Task).recipes:
        yield f"recipe {key}", partial(recipe, key)


def _task_of(name: str) -> Task[Any]:
    task_class = host().load("task", name, Task)
    require_defaults(task_class.Config, "; call check_task")
    task: Task[Any] = task_class(task_class.Config())
    return task


def _recipe(kind: str, name: str) -> Checks:
    def training() -> str:
        recipe = host().load(kind, name, Recipe)
        check_recipe(recipe)
        args = {**STEPS, "batch": STEPS["batch"] * recipe.accumulate}
        if recipe.stages:  # they would take more than the two steps; so they are scaled to them
            args["schedule_steps"] = recipe.schedule_steps or recipe.steps
        model, task = trainable(distribution_of(kind, name))
        tiny_run(model, task.name, recipe=name, recipe_args=args)
        return f"two steps of {model.name} on {task.name}"

    yield "training", training


def _suite(kind: str, name: str) -> Checks:
    def boards() -> str:
        suite = find_suite(name)
        check_suite(suite)
        return f"{len(suite.boards)} boards"

    yield "boards", boards


def _metric(kind: str, name: str) -> Checks:
    def values() -> str:
        metric, of = host().load(kind, name, Metric), distribution_of(kind, name)
        refusal = "no installed task is supported"
        for task in all_tasks(of):
            if metric().supports(task) is not None:
                continue
            refusal = "no installed model is supported"
            for model in models_for(task, of):
                module = model().build(task.signature, small_config(model))
                if metric().supports_model(module) is None:
                    check_metric(metric(), module, task)
                    tiny_run(model, task.name, metrics=(name,))
                    return f"of {model.name} on {task.name}; its record verifies"
        raise NotCheckedError(refusal)

    yield "values", values


def _command(kind: str, name: str) -> Checks:
    def help_page() -> str:
        check_command(host().target(kind, name)[1], name)
        return "--help works"

    yield "help", help_page


def _any_kind(kind: str, name: str) -> Checks:
    def target() -> str:
        host().target(kind, name)
        return "its target can be imported"

    yield "target", target


#: The checks of each kind of entry; other kinds must be importable.
CHECKS: dict[str, Callable[[str, str], Checks]] = {
    "model": _model,
    "task": _task,
    "recipe": _recipe,
    "suite": _suite,
    "metric": _metric,
    "grader": grader_checks,
    "executor": executor_checks,
    "tracker": tracker_checks,
    "command": _command,
}
