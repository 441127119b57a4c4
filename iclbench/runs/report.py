"""The parts of a record besides statistics: training, evaluation, grading, plugins."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.errors import RunError
from ..api.record import (
    EvaluationReport,
    GraderReport,
    PluginReference,
    SeedResult,
    TrainingReport,
)
from ..api.spec import ResolvedSpec
from ..api.statistics import finite
from ..training.loop import Trained
from .grading import Grading
from .models import Model
from .plan import Plan
from .statistics import Summary
from .store import RecordStore


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


def seed_results(models: Sequence[Model], summary: Summary) -> list[SeedResult]:
    """The statistics of each seed alone."""
    return [
        SeedResult(seed=model.seed, diverged_at=model.diverged_at, metrics=metrics)
        for model, metrics in zip(models, summary.seeds, strict=True)
    ]


def evaluation_report(plan: Plan, seconds: float) -> EvaluationReport:
    """The prompts that the models were evaluated on, and how long that took."""
    task, spec = plan.task, plan.spec
    evaluated = {name: v for name, v in spec.task_args.items() if name not in task.training_only}
    return EvaluationReport(
        prompts=spec.eval_prompts,
        seed=spec.eval_seed,
        digest=task.evaluation_digest(spec.eval_prompts, spec.eval_seed),
        task_args=evaluated,
        provenance=dict(task.provenance),
        seconds=seconds,
    )


def grader_report(grading: Grading, store: RecordStore, spec: ResolvedSpec) -> GraderReport:
    """The grader's report with the file of its answers; raises RunError if nothing was graded."""
    graded = grading.report()
    if not graded.completions:
        raise RunError(f"task {spec.task} gave grader {graded.name} nothing to grade")
    answers = store.write_file(spec, "answers", grading.answers(), "jsonl")
    return graded.model_copy(update={"answers": answers})


def plugin_references(plan: Plan) -> list[PluginReference]:
    """The plugins that take part, with the digests of their sources."""
    return [
        PluginReference(
            name=plugin.name,
            distribution=plugin.distribution,
            version=plugin.version,
            source=plugin.source_digest(),
        )
        for plugin in plan.plugins
    ]
