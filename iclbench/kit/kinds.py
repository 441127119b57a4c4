"""The checks that the kit makes of each kind of entry."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from ..api.architecture import Architecture, Solver
from ..api.asked import Asked
from ..api.errors import PLUGIN_FAILURES, UnsupportedError, UsageError, reason_of
from ..api.executor import Executor
from ..api.grader import Grader
from ..api.metric import Metric
from ..api.prompts import Target
from ..api.recipe import Recipe
from ..api.task import Task
from ..api.tracker import Tracker
from ..plugins import host
from ..runs.checks import check_architecture, expect
from ..runs.suites import find_suite
from ..runs.tracking import tracking
from ..sweeps.conformance import check_executor
from .declarations import check_declared, check_replicas_of_model
from .parts import (
    check_command,
    check_config,
    check_grader,
    check_metric,
    check_recipe,
    check_suite,
)
from .recipes import check_recipe_args
from .tasks import check_task
from .trials import (
    STEPS,
    Checks,
    NotCheckedError,
    all_tasks,
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


def _load(kind: str, name: str, base: type) -> Any:
    return host().load(kind, name, base)


def _distribution(kind: str, name: str) -> str:
    """That of the entry, beside which entries of others are not tried where others exist."""
    return host().provider(kind, name)[0].distribution


def _model(kind: str, name: str) -> Checks:
    def arguments() -> str:
        check_config((model := _load(kind, name, Architecture)).Config, model.replica_args)
        surplus = model.search_args.keys() - model.Config.model_fields.keys()
        expect(not surplus, f"search_args names {', '.join(sorted(surplus))}, which Config lacks")
        return "described, and the same after JSON"

    def module() -> str:
        architecture = _load(kind, name, Architecture)
        config = small_config(architecture)
        tasks = tasks_for(architecture(), config, _distribution(kind, name))
        expect(bool(tasks), "it supports no installed task with its default arguments")
        for task in tasks:
            try:
                check_architecture(architecture(), task, config)
                check_replicas_of_model(architecture(), task, config)
            except PLUGIN_FAILURES as error:
                expect(False, f"on {task.name}: {reason_of(error)}")
        return f"on {', '.join(task.name for task in tasks)}"

    def training() -> str:
        architecture = _load(kind, name, Architecture)
        if issubclass(architecture, Asked):
            raise NotCheckedError("it would query a language model")
        of = _distribution(kind, name)
        tasks = tasks_for(architecture(), small_config(architecture), of)
        expect(bool(tasks), "it supports no installed task with its default arguments")
        # A record of the shortest prompts shows as much as any other.
        task = min(tasks, key=lambda task: task.signature.length)
        record = tiny_run(architecture, task.name)
        return f"{record.spec.origin}, on {task.name}; its record verifies"

    def recipes() -> str:
        return check_recipe_args(_load(kind, name, Architecture), _distribution(kind, name))

    yield "arguments", arguments
    yield "module", module
    yield "run", training
    if not issubclass(_load(kind, name, Architecture), Solver | Asked):
        yield "recipes", recipes
    for weights in _load(kind, name, Architecture).constructions:
        yield f"weights {weights}", partial(_construction, name, weights)


def _construction(name: str, weights: str) -> str:
    """A construction conforms if some task takes it and its record verifies."""
    architecture = _load("model", name, Architecture)
    construction = architecture.constructions[weights]
    require_defaults(construction.Config)
    refusals = []
    for task in all_tasks(_distribution("model", name)):
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
        check_config((task := _load(kind, name, Task)).Config, task.replica_args)
        return "described, and the same after JSON"

    def prompts() -> str:
        task = _task_of(name)
        check_task(task)
        check_declared(task)
        text = f"version {task.version}, floor: {task.floor_kind}"
        if task.signature.target in get_args(Target):
            return text
        return f"{text}; no shipped solver answers its target {task.signature.target!r}"

    def training() -> str:
        model = next(models_for(_task_of(name), _distribution(kind, name)), None)
        if model is None:
            raise NotCheckedError("no installed model supports it")
        tiny_run(model, name)
        return f"{model.name}; its record verifies"

    yield "arguments", arguments

    def recipe(key: str) -> str:
        check_recipe(_load(kind, name, Task).recipes[key])
        return "its optimizer takes its arguments"

    yield "prompts", prompts
    yield "run", training
    for key in _load(kind, name, Task).recipes:
        yield f"recipe {key}", partial(recipe, key)


def _task_of(name: str) -> Task[Any]:
    task_class = _load("task", name, Task)
    require_defaults(task_class.Config, "; call check_task")
    task: Task[Any] = task_class(task_class.Config())
    return task


def _recipe(kind: str, name: str) -> Checks:
    def training() -> str:
        recipe = _load(kind, name, Recipe)
        check_recipe(recipe)
        args = {**STEPS, "batch": STEPS["batch"] * recipe.accumulate}
        if recipe.stages:  # they shrink with the steps
            args["schedule_steps"] = recipe.schedule_steps or recipe.steps
        model, task = trainable(_distribution(kind, name))
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
        metric, of = _load(kind, name, Metric), _distribution(kind, name)
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


def _grader(kind: str, name: str) -> Checks:
    def arguments() -> str:
        check_config(_load(kind, name, Grader).Config)
        return "described, and the same after JSON"

    def scores() -> str:
        grader = _load(kind, name, Grader)
        require_defaults(grader.Config)
        check_grader(grader(grader.Config()))
        return "the same twice, and for each completion alone"

    yield "arguments", arguments
    yield "scores", scores


def _tracker(kind: str, name: str) -> Checks:
    def arguments() -> str:
        check_config(_load(kind, name, Tracker).Config)
        return "described, and the same after JSON"

    def following() -> str:
        model, task = trainable(_distribution(kind, name))
        earlier = len(host().problems)
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory())
            try:
                stack.enter_context(tracking(name, out=folder))
            except UsageError as error:
                raise NotCheckedError(f"it can't be prepared here: {error}") from None
            tiny_run(model, task.name)
        # A run goes on without a tracker that raises, so only the host knows.
        dropped = [p for p in host().problems[earlier:] if f"tracker {name} " in p]
        expect(not dropped, "; ".join(dropped))
        return f"a run of {model.name} on {task.name}"

    yield "arguments", arguments
    yield "run", following


def _executor(kind: str, name: str) -> Checks:
    def arguments() -> str:
        check_config(_load(kind, name, Executor).Config)
        return "described, and the same after JSON"

    def jobs() -> str:
        # Here, since nodes of a cluster may not share the folder of temporary files.
        with TemporaryDirectory(prefix="iclbench-check-", dir=Path.cwd()) as shared:
            require_defaults((executor := _load(kind, name, Executor)).Config)
            try:
                check_executor(executor(None, Path(shared, "jobs")), folder=shared)
            except UsageError as error:  # its package or its cluster is missing
                raise NotCheckedError(f"it can't run here: {error}") from None
        return "results, failures and interruption with 2 workers"

    yield "arguments", arguments
    yield "jobs", jobs


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
    "grader": _grader,
    "executor": _executor,
    "tracker": _tracker,
    "command": _command,
}
