"""The parts of a record besides statistics: training, evaluation, grading, plugins."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..api.architecture import Solver
from ..api.errors import RunError
from ..api.ranking import Ranking
from ..api.record import GraderReport, PluginReference, SeedReport, TrainingReport
from ..api.results import Evaluation, FloorReport
from ..api.statistics import finite
from ..discovery import Plugin
from ..training.loop import Trained
from .code import harness_reference, installed_code
from .first_answers import as_numbers
from .grading import Grading
from .measure import Measured
from .models import Model
from .objects import Objects
from .plan import Plan
from .statistics import Summary


def training_report(plan: Plan, trained: Trained, rows: range) -> TrainingReport:
    """How this plan's replicas, `rows` of the program, were trained."""
    model_steps, seconds = trained.steps * len(trained.states), trained.clock.wall
    return TrainingReport(
        steps=trained.steps,
        batch=plan.spec.recipe_args["batch"],
        replicas=trained.replicas,
        engine=trained.engine,
        speedup=trained.speedup,
        seconds=seconds * len(rows) / len(trained.states),
        steps_per_second=model_steps / seconds if seconds else 0.0,
        curve_steps=trained.curve_steps,
        curve=[[finite(point[row]) for row in rows] for point in trained.curve],
        note=trained.note,
    )


def seed_reports(models: Sequence[Model]) -> list[SeedReport]:
    """The seed of each model, and where it diverged."""
    return [SeedReport(seed=model.seed, diverged_at=model.diverged_at) for model in models]


def date_now() -> str:
    """The time to the second, with its zone."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def ranking(plan: Plan) -> Ranking:
    """What the plan's task ranks by."""
    primary = plan.task.primary
    return Ranking(metric=primary.metric, better=primary.better, statistic=plan.task.statistic)


def is_chance(plan: Plan) -> bool:
    """Whether the plan's model declares that it ignores the examples."""
    return isinstance(plan.architecture, Solver) and plan.architecture.chance


def evaluation_set(plan: Plan, digest: str) -> dict[str, Any]:
    """The fields of an evaluation that name its prompts, and the title of its task."""
    task, spec = plan.task, plan.spec
    args = task.config.model_dump(mode="json")
    return {
        "title": task.title,
        "shift": task.shift or None,
        "prompts": spec.eval_prompts,
        "seed": spec.eval_seed,
        "digest": digest,
        "task_args": {n: v for n, v in args.items() if n not in task.training_only},
        "provenance": dict(task.provenance),
    }


def evaluation(plan: Plan, measured: Measured, summary: Summary, objects: Objects) -> Evaluation:
    """What was measured on the plan's prompts; stores every value."""
    return Evaluation(
        **evaluation_set(plan, measured.digest),
        metrics=summary.metrics,
        seeds=summary.seeds,
        curves=summary.curves,
        floor=floor_report(plan, measured.floor_values, summary, objects),
        values=objects.write_arrays(measured.values),
        seconds=measured.seconds,
        answers=None if measured.answers is None else as_numbers(measured.answers),
    )


def floor_report(
    plan: Plan, values: Mapping[str, np.ndarray], summary: Summary, objects: Objects
) -> FloorReport:
    """The floor of an evaluation; stores every value."""
    return FloorReport(
        kind=plan.task.floor_kind if values else "none",
        name=plan.task.floor_name,
        prompts=max((len(array) for array in values.values()), default=0),
        metrics=summary.floor,
        curves=summary.floor_curves,
        values=objects.write_arrays(values),
    )


def grader_report(grading: Grading, objects: Objects, task: str) -> GraderReport:
    """The grader's report with the file of its answers; raises RunError if nothing was graded."""
    graded = grading.report()
    if not graded.completions:
        raise RunError(f"task {task} gave grader {graded.name} nothing to grade")
    answers = objects.write(grading.answers(), "jsonl")
    return graded.model_copy(update={"answers": answers})


def plugin_references(plugins: Sequence[Plugin]) -> list[PluginReference]:
    """The harness and the plugins, with the digests of their sources."""
    installed = installed_code()
    return [harness_reference(), *(installed[plugin.name] for plugin in plugins)]
