"""run(spec) → Record: the whole way, from a plan through training and evaluation to the record."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from .config import parse_config
from .conformance import require_causal
from .errors import RunError, UsageError
from .evaluation import evaluate, floor
from .files import require_writable
from .plans import Plan, resolve
from .plugins import host, report
from .precision import DTYPES, full_precision
from .randomness import derive_seed, torch_generator
from .records import (
    Environment,
    EvaluationReport,
    FileReference,
    PluginReference,
    Ranking,
    Record,
    RecordStore,
    SeedResult,
    TrainingReport,
)
from .specs import RunSpec
from .statistics import Values, curve, finite, summarize
from .tasks import EvaluationContext
from .training.checkpoints import load_state, save_weights
from .training.loop import Replica, Resumption, Trained, Training


@dataclass(frozen=True)
class Settings:
    """How to run, none of which changes a result beyond the last bits."""

    out: Path = Path("results")
    device: str = "auto"
    force: bool = False
    resume: bool = True
    checkpoint_seconds: float = 30.0
    eval_batch: int = 1024


@dataclass(frozen=True)
class Model:
    """A module with its parameters, and the seed that it comes from."""

    seed: int | None
    module: nn.Module
    diverged_at: int | None = None


def run(
    *,
    out: str | Path = "results",
    device: str = "auto",
    force: bool = False,
    resume: bool = True,
    **spec: Any,
) -> Record:
    """Run one spec (`iclbench.RunSpec`'s fields) and return its record, or the one it left before.

    Raises UsageError for what can't be run and RunError for what failed.
    """
    plan = resolve(parse_config(RunSpec, spec, "run"))
    return run_plans([plan], Settings(Path(out), device, force, resume))[0]


def run_plans(plans: Sequence[Plan], settings: Settings) -> list[Record]:
    """Run plans that one program can train: they differ in learning rate or seeds alone."""
    device = find_device(settings.device)
    require_writable(settings.out)
    store = RecordStore(settings.out)
    records = {}
    for plan in plans:
        found = None if settings.force else store.find(plan.spec)
        if found is not None:
            records[plan.spec.id] = found
    todo = [plan for plan in plans if plan.spec.id not in records]
    for plan in todo:
        host().notify("iclbench_run_started", spec=plan.spec)
    if todo:
        with full_precision(DTYPES[todo[0].spec.dtype]):
            for plan, record in zip(todo, _execute(todo, settings, device, store), strict=True):
                records[plan.spec.id] = record
                host().notify("iclbench_run_finished", spec=plan.spec, record=record)
    return [records[plan.spec.id] for plan in plans]


def _execute(
    plans: list[Plan], settings: Settings, device: torch.device, store: RecordStore
) -> list[Record]:
    if plans[0].recipe is None:
        return [_conclude(plan, given_models(plan), None, settings, device) for plan in plans]
    trained = _train(plans, settings, device)
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


def _train(plans: list[Plan], settings: Settings, device: torch.device) -> Trained:
    """Train all seeds of all plans as replicas of one program."""
    recipe = plans[0].recipe
    if recipe is None:
        raise RunError(f"{plans[0].spec.model} has nothing to train")
    modules, replicas = [], []
    for plan in plans:
        for seed in plan.spec.seeds:
            modules.append(initial_module(plan, seed))
            rate = plan.spec.recipe_args["learning_rate"]
            replicas.append(Replica(seed, rate))
    first = plans[0]
    require_causal(modules[0], first.task)
    training = Training(
        modules,
        replicas,
        first.task,
        recipe,
        device=device,
        dtype=DTYPES[first.spec.dtype],
        freeze=first.spec.freeze,
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
    resumption = Resumption(path, settings.checkpoint_seconds, settings.resume)
    return training.run(resumption, observe)


def initial_module(plan: Plan, seed: int) -> nn.Module:
    """One seed's model before training: random, or from given weights, perturbed if asked."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("initialization", seed))
        module = plan.architecture.build(plan.task.signature, plan.config)
    if plan.states:
        state = plan.states[seed] if seed in plan.states else plan.states[None]
        load_state(module, state, str(plan.spec.init), partial=True)
    if plan.spec.perturb:
        noise = torch_generator("cpu", "perturbation", seed)
        with torch.no_grad():
            for parameter in module.parameters():
                draw = torch.randn(parameter.shape, generator=noise, dtype=parameter.dtype)
                parameter.add_(plan.spec.perturb * draw)
    return module


def given_models(plan: Plan) -> list[Model]:
    """The models of a plan that trains nothing: a solver, a construction, loaded weights."""
    if not plan.states:
        return [Model(None, plan.architecture.build(plan.task.signature, plan.config))]
    models = []
    for seed, state in sorted(plan.states.items(), key=lambda pair: pair[0] or 0):
        module = plan.architecture.build(plan.task.signature, plan.config)
        load_state(module, state, str(plan.spec.weights))
        require_causal(module, plan.task)
        models.append(Model(seed, module))
    return models


def measure(
    plan: Plan, models: list[Model], device: torch.device, eval_batch: int
) -> tuple[dict[str, Values], dict[str, np.ndarray]]:
    """Every metric as (seeds, prompts[, axis]), and the floor's as (prompts[, axis])."""
    spec = plan.spec
    batches = plan.task.evaluation_set(spec.eval_prompts, spec.eval_seed, DTYPES[spec.dtype])
    found = []
    for model in models:
        context = EvaluationContext(
            device, torch_generator("cpu", "evaluation", spec.eval_seed), None, eval_batch
        )
        module = model.module.to(device).eval()
        found.append(evaluate(plan.task, module, batches, context, list(plan.metrics)))
    values = {name: np.stack([each[name] for each in found]) for name in found[0]}
    return values, floor(plan.task, batches)


def _conclude(
    plan: Plan,
    models: list[Model],
    training: TrainingReport | None,
    settings: Settings,
    device: torch.device,
) -> Record:
    """Evaluate, and write the record with its files."""
    started = time.perf_counter()
    values, bottom = measure(plan, models, device, settings.eval_batch)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - started
    store, spec, axes = RecordStore(settings.out), plan.spec, plan.task.axes
    keep = spec.origin in {"trained", "loaded"}
    weights = _write_weights(plan, models, store) if keep else None
    arrays = {f"metric/{name}": v for name, v in values.items()}
    arrays.update({f"floor/{name}": v for name, v in bottom.items()})
    floors = {name: v[None] for name, v in bottom.items()}
    record = Record(
        id=spec.id,
        spec=spec,
        command=plan.request.command(),
        ranking=Ranking(**plan.task.primary._asdict()),
        parameters=sum(p.numel() for p in models[0].module.parameters()),
        metrics={name: summarize(v) for name, v in values.items()},
        curves={name: curve(values[name], axis) for name, axis in axes.items()},
        seeds=[
            SeedResult(
                seed=model.seed,
                diverged_at=model.diverged_at,
                metrics={name: summarize(v[i : i + 1]) for name, v in values.items()},
            )
            for i, model in enumerate(models)
        ],
        floor={name: summarize(v) for name, v in floors.items()},
        floor_curves={name: curve(floors[name], axis) for name, axis in axes.items()},
        per_prompt=store.write_per_prompt(spec, arrays),
        weights=weights,
        training=training,
        evaluation=EvaluationReport(
            prompts=spec.eval_prompts,
            seed=spec.eval_seed,
            digest=plan.task.evaluation_digest(spec.eval_prompts, spec.eval_seed),
            seconds=seconds,
        ),
        environment=_environment(device),
        plugins=[
            PluginReference(name=p.name, distribution=p.distribution, version=p.version)
            for p in plan.plugins
        ],
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    ).sealed()
    store.write(record)
    return record


def _write_weights(plan: Plan, models: list[Model], store: RecordStore) -> FileReference:
    path = store.path(plan.spec, ".weights.safetensors")
    states = {
        model.seed: {
            name: tensor.detach().cpu()
            for name, tensor in [*model.module.named_parameters(), *model.module.named_buffers()]
        }
        for model in models
    }
    digest = save_weights(path, states, plan.spec.model, plan.spec.model_args)
    return FileReference(file=path.name, sha256=digest)


def _training_report(plan: Plan, trained: Trained, rows: list[int]) -> TrainingReport:
    steps = trained.curve_steps[-1] if trained.curve_steps else 0
    total = steps * len(trained.states)
    return TrainingReport(
        steps=steps,
        batch=plan.spec.recipe_args["batch"],
        replicas=trained.replicas,
        seconds=trained.seconds,
        steps_per_second=total / trained.seconds if trained.seconds else 0.0,
        curve_steps=trained.curve_steps,
        curve=[[finite(point[row]) for row in rows] for point in trained.curve],
        note=trained.note,
    )


def _environment(device: torch.device) -> Environment:
    cuda = device.type == "cuda"
    return Environment(
        device=torch.cuda.get_device_name(device) if cuda else "cpu",
        platform=platform.platform(),
        threads=torch.get_num_threads(),
        versions={
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("iclbench", "torch", "numpy")},
        },
    )


def find_device(name: str) -> torch.device:
    """The device of that name, `auto` for a GPU where there is one; raises UsageError."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"--device: {name!r} is no device; use auto, cpu or cuda[:N]") from None
    if device.type not in {"cpu", "cuda"}:
        raise UsageError(f"--device: {name!r} is not supported; use auto, cpu or cuda[:N]")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device: {name!r} is not there ({torch.cuda.device_count()} GPUs)")
    return device


def _checkpoint_path(plans: Sequence[Plan], store: RecordStore) -> Path:
    """Where the program of these plans keeps its checkpoint."""
    name = "-".join(sorted({plan.spec.id for plan in plans}))
    short = name if len(plans) == 1 else f"{plans[0].spec.train_key()}-{derive_seed(name):x}"
    return store.folder / "checkpoints" / f"{short}.safetensors"
