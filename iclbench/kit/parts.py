"""Conformance checks of metrics, graders, recipes, commands, configurations and texts.

Those of architectures are in `runs.checks`, that of tasks in `kit.tasks`, that of suites in
`kit.suites`, that of executors in `sweeps.conformance`. Each raises ConformanceError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import typer
from torch import Tensor, nn
from typer.testing import CliRunner

from ..api.architecture import Architecture
from ..api.config import Config, parse_config
from ..api.errors import UsageError, first_line
from ..api.evaluation import EvaluationContext
from ..api.grader import Completion, Grader
from ..api.metric import Metric
from ..api.prompts import Batch
from ..api.random import torch_generator
from ..api.recipe import Recipe
from ..api.record import GraderReport
from ..api.task import Task
from ..discovery import Plugin
from ..leaderboards.descriptions import read_about
from ..plugins import host
from ..runs.checks import ConformanceError, expect
from ..runs.evaluate import evaluate, floor
from ..runs.grading import Grading
from ..runs.recipe_arguments import refusal
from ..training.optimizers.choice import with_whole_optimizer
from .declarations import PROMPTS, check_spelling, scores_of_zeros
from .trials import NotCheckedError, usable_task

#: What a grader is shown: an ordinary ending, an empty one, and one with other letters.
COMPLETIONS = [
    Completion("Once upon a time", " there was a cat. The cat was happy."),
    Completion("Once upon a time", ""),
    Completion("«Où es-tu ?»", " demanda le 猫.\n"),
]


def check_config(config: type[Config], replica_args: frozenset[str] = frozenset()) -> None:
    """Every argument is described, and the defaults are valid and survive being written as JSON.

    `replica_args`, in which programs of several replicas may differ, must be among the arguments.
    """
    expect(issubclass(config, Config), f"{config.__name__} must derive from iclbench.Config")
    surplus = replica_args - config.model_fields.keys()
    expect(not surplus, f"replica_args names {', '.join(sorted(surplus))}, which Config lacks")
    undescribed = [name for name, field in config.model_fields.items() if not field.description]
    expect(
        not undescribed,
        f"arguments without a description: {', '.join(undescribed)}; "
        'give each one by pydantic.Field(default, description="…")',
    )
    if any(field.is_required() for field in config.model_fields.values()):
        return
    validated = type(config.__name__, (config,), {"model_config": {"validate_default": True}})
    try:
        parse_config(validated, {}, "the defaults")
    except UsageError as error:
        expect(False, str(error))
    default = config()
    again = config.model_validate_json(default.model_dump_json())
    expect(again == default, "the default arguments change in a round trip through JSON")


def check_search_args(architecture: type[Architecture]) -> None:
    """The values that a search may choose are of arguments that there are, and are accepted.

    Values are not tried where an argument has no default.
    """
    is_mapping = isinstance(architecture.search_args, Mapping)
    expect(is_mapping, "search_args must map names of arguments to the values to try")
    fields = architecture.Config.model_fields
    needs_more = any(field.is_required() for field in fields.values())
    for name, values in architecture.search_args.items():
        expect(name in fields, f"search_args names {name}, which Config lacks")
        for value in () if needs_more else values:
            reason = refusal(architecture.Config, {name: value})
            expect(reason is None, f"search_args has {name}={value!r}, which is refused: {reason}")


def check_metric(metric: Metric, model: nn.Module, task: Task[Any], prompts: int = 12) -> None:
    """Check what a metric measures of a model on a task that it supports.

    Values must be float64, one per prompt or one per prompt and value of an axis, the same every
    time, and, except for rounding, for every evaluation batch size. A floor must be of values that
    `compute` gives, and an analysis must be JSON.
    """
    reason = metric.supports(task) or metric.supports_model(model)
    expect(reason is None, f"it refuses: {reason}")
    batches = task.evaluation_batches(prompts, 0, torch.float32)
    axes = metric.axes(model)
    model.eval()

    def measured(batch_size: int | None) -> dict[str, Any]:
        return evaluate(task, model, batches, _context(batch_size), [metric])

    with torch.no_grad():
        computed = metric.compute(model, task, batches[0], _context(None))
        analysis = metric.analysis(model, task, batches, _context(None))
    expect(bool(computed or analysis), "it gives neither values nor an analysis")
    for name, values in computed.items():
        _check_values(name, values, batches[0], len(axes[name].values) if name in axes else None)
    whole, again, parts = measured(None), measured(None), measured(5)
    for name in computed:
        one, other, third = (torch.from_numpy(v[name]) for v in (whole, again, parts))
        expect(_close(one, other, 0.0), f"{name} differs between two evaluations")
        expect(
            _close(one, third, 1e-3), f"{name} depends on how many prompts are evaluated at once"
        )
    floors = floor(task, batches, model, [metric], _context(None))
    surplus = sorted(set(floors) - set(whole))
    expect(not surplus, f"floor() has {', '.join(surplus)}, which compute() does not give")
    _check_json(analysis)


def _context(batch_size: int | None) -> EvaluationContext:
    generator = torch_generator("cpu", "conformance of metrics")
    return EvaluationContext(torch.device("cpu"), generator, batch_size=batch_size)


def _check_values(name: str, values: Tensor, batch: Batch, axis: int | None) -> None:
    expect(isinstance(values, Tensor), f"{name} is a {type(values).__name__}, not a tensor")
    shape = (len(batch.target),) if axis is None else (len(batch.target), axis)
    expect(tuple(values.shape) == shape, f"{name} is {tuple(values.shape)}, not {shape}")
    expect(values.dtype == torch.float64, f"{name} is {values.dtype}, not torch.float64")
    expect(values.device.type == "cpu", f"{name} is on {values.device}, not on the CPU")


def _close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    return one.shape == other.shape and torch.allclose(
        one, other, rtol=tolerance, atol=tolerance * 0.1, equal_nan=True
    )


def _check_json(analysis: Any) -> None:
    try:
        json.dumps(analysis, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        expect(False, f"analysis() is not JSON with finite numbers: {error}")
    expect(isinstance(analysis, dict), "analysis() is not a dictionary")


def check_grader(grader: Grader) -> None:
    """Check what a grader gives for three completions, one of them empty.

    Scores must be named, one per completion, finite or NaN, the same every time, and independent of
    the other completions. A paid grader is never asked: only its report is checked, and whether it
    reads what it keeps. Raises NotCheckedError where the grader lacks something, such as a key.
    """
    try:
        grader.prepare(len(COMPLETIONS), 0.0 if grader.paid else None)
    except UsageError as error:
        raise NotCheckedError(f"it can't be prepared here: {error}") from None
    report = grader.report()
    expect(isinstance(report, GraderReport), "report() does not return a GraderReport")
    expect(report.name == grader.name, f"report() calls the grader {report.name!r}")
    if grader.paid:
        reads = type(grader).read is not Grader.read and type(grader).raw is not Grader.raw
        expect(
            reads, "a paid grader needs raw() and read(), since its answers are not requested again"
        )
        raise NotCheckedError("it costs money")
    with TemporaryDirectory() as folder:
        grading = Grading(grader)
        scores = grading.grade(COMPLETIONS, Path(folder))
        again = grading.grade(COMPLETIONS, Path(folder))
        alone = [grading.grade([completion], None) for completion in COMPLETIONS]
    for name, values in scores.items():
        expect(_same(values, again[name]), f"score {name} differs between two calls")
        single = [one[name][0] for one in alone]
        expect(_same(values, single), f"score {name} depends on the other completions")


def _same(one: list[float], other: list[float]) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(one, other, strict=True)
    )


def check_recipe(recipe: Recipe) -> None:
    """A recipe's optimizer exists and takes its arguments, and the recipe survives JSON.

    Raises NotCheckedError for an optimizer of a package that is not installed.
    """
    package, dot, _ = recipe.optimizer.partition(".")
    if dot and find_spec(package) is None:
        raise NotCheckedError(f"{package} is not installed")
    try:
        with_whole_optimizer(recipe)
    except UsageError as error:
        expect(False, str(error))
    again = Recipe.model_validate_json(recipe.model_dump_json())
    expect(again == recipe, "the recipe changes in a round trip through JSON")


def check_command(function: Any, name: str = "command") -> None:
    """A command is a function that typer can run, with a help page."""
    expect(isfunction(function), f"{function!r} is not a function")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    try:
        result = CliRunner().invoke(app, ["--help"], prog_name=f"iclbench {name}")
    except Exception as error:  # typer refuses the function's parameters
        raise ConformanceError(f"its --help fails: {first_line(error)}") from error
    expect(result.exit_code == 0, f"its --help fails: {result.exception!r}")


def check_about(plugin: Plugin) -> str:
    """The plugin's `about.toml` is valid and describes what the plugin has; says how much of it.

    Raises UsageError for a file that is not valid.
    """
    about = read_about(plugin)
    described = {("task", name) for name in about.tasks} | {
        ("model", name) for name in about.models
    }
    known = {(kind, e.name) for kind in ("task", "model") for e in plugin.entries.get(kind, ())}
    others = sorted(f"{kind} {name}" for kind, name in described - known)
    expect(not others, f"about.toml describes what the plugin lacks: {', '.join(others)}")
    taken = {
        (kind, entry.name): _arguments(kind, entry.name)
        for kind in ("task", "model", "grader")
        for entry in plugin.entries.get(kind, ())
    }
    _expect_taken("nothing takes", about.arguments, set().union(*taken.values()))
    for kind, entries in (("task", about.tasks), ("model", about.models)):
        for name, texts in entries.items():
            _expect_taken(f"{kind} {name} does not take", texts.arguments, taken[kind, name])
    for name, task_texts in about.tasks.items():
        _check_metrics(name, task_texts.metrics)
    return f"of {len(described)} of {len(known)} tasks and models"


def _expect_taken(who: str, explained: Iterable[str], taken: set[str]) -> None:
    surplus = ", ".join(sorted({*explained} - taken))
    expect(not surplus, f"about.toml explains arguments that {who}: {surplus}")


def _check_metrics(name: str, explained: Iterable[str]) -> None:
    """Texts may explain metrics of other configurations too; misspelled ones are found."""
    if task := usable_task(name):
        scores = scores_of_zeros(task, task.evaluation_batches(PROMPTS, 0, torch.float64))
        check_spelling(f"about.toml's texts of task {name}: metrics", explained, scores)


def _arguments(kind: str, name: str) -> set[str]:
    """The arguments of a task, a model with its constructions, or a grader; a task's axes too."""
    target = host().target(kind, name)[1]
    constructions = getattr(target, "constructions", {}).values()
    names = {field for one in (target, *constructions) for field in one.Config.model_fields}
    task = usable_task(name) if kind == "task" else None
    return names if task is None else names | {axis.name for axis in task.axes.values()}
