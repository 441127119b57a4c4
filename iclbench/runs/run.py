"""run(spec) → Record: the whole way, from a plan through training and evaluation to the record."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save

from ..api.config import parse_config
from ..api.errors import RunError, UsageError
from ..api.grader import Grader
from ..api.random import derive_seed, torch_generator
from ..api.recipe import Recipe
from ..api.record import (
    EvaluationReport,
    GraderReport,
    PluginReference,
    Ranking,
    Record,
    SeedResult,
    TrainingReport,
)
from ..api.spec import ResolvedSpec, RunSpec, digest_of
from ..api.statistics import finite
from ..api.task import Axis, EvaluationContext
from ..console import report
from ..devices import environment, find_device
from ..files import require_writable
from ..plugins import host
from ..precision import DTYPES, full_precision
from ..training.checkpoints import load_state, weights_bytes
from ..training.gradients.choice import EngineName
from ..training.loop import Trained, Training
from ..training.resumption import Resumption
from ..training.state import Replica
from .evaluate import evaluate, floor
from .grading import Grading
from .models import Model, given_models, initial_module, require_usable
from .plan import Plan, resolve
from .statistics import Values, curve, graded, summarize
from .store import RecordStore


@dataclass(frozen=True)
class Settings:
    """How to run, none of which changes a result beyond the last bits."""

    out: Path = Path("results")
    device: str = "auto"
    force: bool = False
    resume: bool = True
    checkpoint_seconds: float = 30.0
    eval_batch: int = 1024
    engine: EngineName = "auto"


def run(
    *,
    out: str | Path = "results",
    device: str = "auto",
    force: bool = False,
    resume: bool = True,
    checkpoint_seconds: float = 30.0,
    eval_batch: int = 1024,
    engine: EngineName = "auto",
    **spec: Any,
) -> Record:
    """Run one spec (`iclbench.RunSpec`'s fields) and return its record, or the one it left before.

    Raises UsageError for what can't be run and RunError for what failed.
    """
    plan = resolve(parse_config(RunSpec, spec, "run"))
    settings = Settings(Path(out), device, force, resume, checkpoint_seconds, eval_batch, engine)
    return run_plans([plan], settings)[0]


def run_plans(plans: Sequence[Plan], settings: Settings) -> list[Record]:
    """Run plans that one program can train: they differ in numbers that replicas carry."""
    device = find_device(settings.device)
    require_writable(settings.out)
    store = RecordStore(settings.out)
    records = {}
    for plan in plans:
        found = None if settings.force else store.find(plan.spec)
        if found is not None:
            records[plan.spec.id] = found
            _say_reused(plan, found)
    todo = [plan for plan in plans if plan.spec.id not in records]
    for plan in todo:
        plan.grading()
    for plan in todo:
        host().notify("iclbench_run_started", spec=plan.spec)
    if todo:
        _require_targets(todo[0])
        try:
            with full_precision(DTYPES[todo[0].spec.dtype]):
                made = _execute(todo, settings, device, store)
        except Exception as error:
            for plan in todo:
                host().notify("iclbench_run_failed", spec=plan.spec, error=error)
            raise
        for plan, record in zip(todo, made, strict=True):
            records[plan.spec.id] = record
            host().notify("iclbench_run_finished", spec=plan.spec, record=record)
    return [records[plan.spec.id] for plan in plans]


def _require_targets(plan: Plan) -> None:
    """Refuse a task whose targets would be broadcast against predictions, before time is spent."""
    task = plan.task
    target = task.evaluation_set(2, plan.spec.eval_seed, DTYPES[plan.spec.dtype])[0].target
    expected = task.signature.target_shape(target)
    if tuple(target.shape) != expected:
        raise UsageError(f"task {task.name}: targets are {tuple(target.shape)}, not {expected}")


def _say_reused(plan: Plan, record: Record) -> None:
    """One line for a run that has a record, which names what has changed since."""
    changed = changed_plugins(plan, record)
    since = f", made by another version of {', '.join(changed)}" if changed else ""
    what = f"{plan.spec.model} on {plan.spec.task}"
    report(f"{what}: has a record of {record.created}{since}; --force runs it again")


def changed_plugins(plan: Plan, record: Record) -> list[str]:
    """The record's plugins whose version or source is another now."""
    now = {p.name: p for p in _plugin_references(plan)}
    return [p.name for p in record.plugins if p.name in now and now[p.name] != p]


def _plugin_references(plan: Plan) -> list[PluginReference]:
    return [
        PluginReference(
            name=p.name,
            distribution=p.distribution,
            version=p.version,
            source=p.source_digest(),
        )
        for p in plan.plugins
    ]


def _execute(
    plans: list[Plan], settings: Settings, device: torch.device, store: RecordStore
) -> list[Record]:
    recipe = plans[0].recipe
    if recipe is None:
        return [_conclude(plan, given_models(plan), None, settings, device) for plan in plans]
    require_usable(initial_module(plans[0], plans[0].spec.seeds[0]), plans[0])
    trained = _train(plans, recipe, settings, device)
    records, start = [], 0
    for plan in plans:
        rows = range(start, start + len(plan.spec.seeds))
        start = rows.stop
        models = []
        for row, seed in zip(rows, plan.spec.seeds, strict=True):
            module = plan.architecture.build(plan.task.signature, plan.config)
            load_state(module, trained.states[row], "the trained state")
            models.append(Model(seed, module, trained.diverged_at[row]))
        about = _training_report(plan, trained, list(rows))
        records.append(_conclude(plan, models, about, settings, device))
    _checkpoint_path(plans, store).unlink(missing_ok=True)
    return records


def _train(plans: list[Plan], recipe: Recipe, settings: Settings, device: torch.device) -> Trained:
    """Train all seeds of all plans as replicas of one program."""
    modules, replicas = [], []
    for plan in plans:
        for seed in plan.spec.seeds:
            modules.append(initial_module(plan, seed))
            rate = plan.spec.recipe_args["learning_rate"]
            replicas.append(Replica(seed, rate, plan.task))
    first = plans[0]
    training = Training(
        modules,
        replicas,
        first.task,
        recipe,
        device=device,
        dtype=DTYPES[first.spec.dtype],
        freeze=first.spec.freeze,
        engine=settings.engine,
    )
    if training.note:
        report(f"{first.spec.model}: {training.note}")

    def observe(step: int, losses: list[float]) -> None:
        start = 0
        for plan in plans:
            stop = start + len(plan.spec.seeds)
            host().notify(
                "iclbench_training_step", spec=plan.spec, step=step, loss=losses[start:stop]
            )
            start = stop

    path = _checkpoint_path(plans, RecordStore(settings.out))
    code = digest_of([r.model_dump() for plan in plans for r in _plugin_references(plan)])
    code = f"{code[:16]} torch {torch.__version__} iclbench {metadata.version('iclbench')}"
    resume = settings.resume and not settings.force
    resumption = Resumption(path, settings.checkpoint_seconds, resume, code)
    return training.run(resumption, observe)


def measure(
    plan: Plan,
    models: list[Model],
    device: torch.device,
    eval_batch: int,
    *,
    grader: Grader | None = None,
    folder: Path | None = None,
) -> tuple[dict[str, Values], dict[str, np.ndarray]]:
    """Every metric as (seeds, prompts[, axis]), and the floor's as (prompts[, axis]).

    A grader may keep its answers in `folder`.
    """
    spec = plan.spec
    batches = plan.task.evaluation_set(spec.eval_prompts, spec.eval_seed, DTYPES[spec.dtype])
    found = []
    for model in models:
        context = EvaluationContext(
            device,
            torch_generator("cpu", "evaluation", spec.eval_seed),
            folder,
            eval_batch,
            grader,
        )
        module = model.module.to(device).eval()
        found.append(evaluate(plan.task, module, batches, context, list(plan.metrics)))
    values = {name: np.stack([each[name] for each in found]) for name in found[0]}
    return values, floor(plan.task, batches, module, plan.metrics, context)


def analyse(plan: Plan, models: list[Model], device: torch.device) -> dict[str, Any]:
    """What each metric says of each model as a whole: metric → a dictionary a model."""
    batches = plan.task.evaluation_set(
        plan.spec.eval_prompts, plan.spec.eval_seed, DTYPES[plan.spec.dtype]
    )
    found: dict[str, Any] = {}
    for metric in plan.metrics:
        each = []
        for model in models:
            context = EvaluationContext(device, torch_generator("cpu", "analysis"))
            module = model.module.to(device).eval()
            with torch.no_grad():
                each.append(metric.analysis(module, plan.task, batches, context))
        if any(each):
            found[metric.name] = each
    return found


def _conclude(
    plan: Plan,
    models: list[Model],
    training: TrainingReport | None,
    settings: Settings,
    device: torch.device,
) -> Record:
    """Evaluate, and write the record with its files."""
    started = time.perf_counter()
    grading = plan.grading()
    folder = settings.out / "graders" if grading else None
    values, bottom = measure(
        plan, models, device, settings.eval_batch, grader=grading, folder=folder
    )
    if plan.task.primary.metric not in values:
        known = ", ".join(values)
        raise RunError(f"task {plan.task.name} ranks by {plan.task.primary.metric}, not in {known}")
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - started
    store, spec = RecordStore(settings.out), plan.spec
    axes = axes_of(plan, models[0])
    keep = spec.origin in {"trained", "loaded"}
    weights = store.write_file(spec, "weights", _weights(plan, models)) if keep else None
    arrays = {f"metric/{name}": np.ascontiguousarray(v) for name, v in values.items()}
    arrays.update({f"floor/{name}": np.ascontiguousarray(v) for name, v in bottom.items()})
    floors = {name: v[None] for name, v in bottom.items()}
    record = Record(
        id=spec.id,
        spec=spec,
        command=plan.request.command(),
        ranking=Ranking(**plan.task.primary._asdict()),
        floor_name=plan.task.floor_name,
        parameters=sum(p.numel() for p in models[0].module.parameters()),
        metrics={name: summarize(graded(name, v)) for name, v in values.items()},
        curves={name: curve(values[name], axis) for name, axis in axes.items() if name in values},
        seeds=[
            SeedResult(
                seed=model.seed,
                diverged_at=model.diverged_at,
                metrics={n: summarize(graded(n, v[i : i + 1])) for n, v in values.items()},
            )
            for i, model in enumerate(models)
        ],
        floor={name: summarize(graded(name, v)) for name, v in floors.items()},
        floor_curves={n: curve(floors[n], axis) for n, axis in axes.items() if n in floors},
        per_prompt=store.write_file(spec, "prompts", save(arrays)),
        weights=weights,
        training=training,
        analyses=analyse(plan, models, device),
        grader=_grader_report(grading, store, spec) if grading else None,
        evaluation=_evaluation_report(plan, seconds),
        environment=environment(device),
        plugins=_plugin_references(plan),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    ).sealed()
    store.write(record)
    return record


def _evaluation_report(plan: Plan, seconds: float) -> EvaluationReport:
    task, spec = plan.task, plan.spec
    kept = {name: v for name, v in spec.task_args.items() if name not in task.training_only}
    return EvaluationReport(
        prompts=spec.eval_prompts,
        seed=spec.eval_seed,
        digest=task.evaluation_digest(spec.eval_prompts, spec.eval_seed),
        task_args=kept,
        provenance=dict(task.provenance),
        seconds=seconds,
    )


def _grader_report(grading: Grading, store: RecordStore, spec: ResolvedSpec) -> GraderReport:
    """What the grader says of itself, with the file of its answers; raises RunError if unused."""
    report = grading.report()
    if not report.completions:
        raise RunError(f"task {spec.task} gave grader {report.name} nothing to grade")
    answers = store.write_file(spec, "answers", grading.answers(), "jsonl")
    return report.model_copy(update={"answers": answers})


def axes_of(plan: Plan, model: Model) -> dict[str, Axis]:
    """The second axes of the task's metrics and of those asked for."""
    asked = [metric.axes(model.module) for metric in plan.metrics]
    return dict(plan.task.axes) | {name: axis for axes in asked for name, axis in axes.items()}


def _weights(plan: Plan, models: list[Model]) -> bytes:
    states = {
        model.seed: {
            name: tensor.detach().cpu()
            for name, tensor in [*model.module.named_parameters(), *model.module.named_buffers()]
        }
        for model in models
    }
    return weights_bytes(states, plan.spec.model, plan.spec.model_args)


def _training_report(plan: Plan, trained: Trained, rows: list[int]) -> TrainingReport:
    total = trained.steps * len(trained.states)
    return TrainingReport(
        steps=trained.steps,
        batch=plan.spec.recipe_args["batch"],
        replicas=trained.replicas,
        engine=trained.engine,
        speedup=trained.speedup,
        seconds=trained.seconds * len(rows) / len(trained.states),
        steps_per_second=total / trained.seconds if trained.seconds else 0.0,
        curve_steps=trained.curve_steps,
        curve=[[finite(point[row]) for row in rows] for point in trained.curve],
        note=trained.note,
    )


def _checkpoint_path(plans: Sequence[Plan], store: RecordStore) -> Path:
    """Where the program of these plans keeps its checkpoint."""
    name = "-".join(sorted({plan.spec.id for plan in plans}))
    short = name if len(plans) == 1 else f"{plans[0].train_key}-{derive_seed(name):x}"
    return store.folder / "checkpoints" / f"{short}.safetensors"
