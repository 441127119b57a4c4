"""Training the replicas of several plans as one program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import torch

from ..api.costs import BudgetReport, Operations, ValidationCurve
from ..api.errors import Interrupted
from ..api.random import derive_seed
from ..api.recipe import Recipe
from ..api.record import TrainingReport
from ..api.spec import digest_of
from ..console import report
from ..devices import free_memory
from ..plugins import host
from ..precision import DTYPES
from ..training.checkpoints import load_state
from ..training.loop import Observer, Trained, Training
from ..training.resumption import Resumption
from ..training.schedules import fit_schedule
from ..training.state import Replica
from .budget import FixedSteps, budget_report, fix_steps, steps_path
from .models import Model, given_models, initial_module, require_usable
from .operations import count_operations
from .plan import Plan
from .report import plugin_references, training_report
from .settings import Settings
from .validators import prepare_validation, validation_curve


class ReadyModels(NamedTuple):
    """One plan's models, to be evaluated, and how they were trained: None where nothing was."""

    models: list[Model]
    operations: Operations | None
    training: TrainingReport | None = None
    budget: BudgetReport | None = None
    validation_curve: ValidationCurve | None = None


def train_or_load(
    plans: Sequence[Plan], settings: Settings, device: torch.device
) -> Iterator[ReadyModels]:
    """Each plan's models in turn: trained as one program, or built or loaded, each when due."""
    if plans[0].recipe is not None:
        return train(plans, settings, device)
    return (_given(plan) for plan in plans)


def _given(plan: Plan) -> ReadyModels:
    models = given_models(plan)
    return ReadyModels(models, count_operations(plan, models[0].module))


def train(plans: Sequence[Plan], settings: Settings, device: torch.device) -> Iterator[ReadyModels]:
    """Train one replica for each seed of each plan as one program; the plans share a `train_key`.

    All are trained before the first plan's models are yielded. Raises Interrupted after a signal.
    """
    require_usable(initial_module(plans[0], plans[0].spec.seeds[0]), plans[0])
    resumption = Resumption(
        checkpoint_path(plans, settings.out),
        settings.checkpoint_seconds,
        settings.resume and not settings.force,
        training_code(plans),
    )
    training, fixed = _prepare(plans, resumption, settings, device)
    if training.note:
        report(f"{plans[0].spec.model}: {training.note}")
    validation = prepare_validation(plans, training, settings.eval_batch)
    training.validation = validation
    try:
        trained = training.run(resumption, _observer(plans, fixed.steps))
    except Interrupted as error:
        more = f" and {len(plans) - 1} more" if len(plans) > 1 else ""
        name = f"{plans[0].spec.model} on {plans[0].spec.task}{more}"
        raise Interrupted(error.signal_number, f"{name} {error}") from None
    del training
    if device.type == "cuda":
        free_memory()  # of the training and its graph, for the evaluation
    for plan, rows in zip(plans, rows_of(plans), strict=True):
        models = _trained_models(plan, trained, rows)
        operations = count_operations(plan, models[0].module, trained.steps)
        yield ReadyModels(
            models,
            operations,
            training_report(plan, trained, rows),
            budget_report(trained, fixed),
            validation_curve(plan, validation, trained, rows, operations),
        )


def _prepare(
    plans: Sequence[Plan], resumption: Resumption, settings: Settings, device: torch.device
) -> tuple[Training, FixedSteps]:
    """The training of the plans up to its first step, and how its steps were fixed."""
    first = plans[0]
    assert first.recipe is not None

    def make(recipe: Recipe) -> Training:
        return _training(plans, recipe, settings, device)

    path = steps_path(resumption.path)
    fixed = fix_steps(first, make, path, resumption.code, resume=resumption.resume)
    return make(fit_schedule(first.recipe, fixed.steps)), fixed


def _observer(plans: Sequence[Plan], steps: int) -> Observer:
    """Calls the hook of training steps for each plan."""

    def observe(step: int, losses: list[float]) -> None:
        for plan, rows in zip(plans, rows_of(plans), strict=True):
            loss = losses[rows.start : rows.stop]
            host().notify(
                "iclbench_training_step", spec=plan.spec, step=step, loss=loss, steps=steps
            )

    return observe


def rows_of(plans: Sequence[Plan]) -> Iterator[range]:
    """Each plan's rows among all replicas: plans in order, and the seeds of each in order."""
    start = 0
    for plan in plans:
        yield range(start, start + len(plan.spec.seeds))
        start += len(plan.spec.seeds)


def checkpoint_path(plans: Sequence[Plan], out: Path) -> Path:
    """Where the program that trains these plans keeps its checkpoint."""
    return checkpoint_of([plan.spec.id for plan in plans], plans[0].train_key, out)


def checkpoint_of(ids: Sequence[str], train_key: str, out: Path) -> Path:
    """Where the program of the runs with these ids keeps its checkpoint."""
    several = f"{train_key}-{derive_seed('-'.join(sorted(set(ids)))):x}"
    name = ids[0] if len(ids) == 1 else several
    return out / "checkpoints" / f"{name}.safetensors"


def remove_checkpoint(plans: Sequence[Plan], out: Path) -> None:
    """Delete what a training leaves to be continued from."""
    path = checkpoint_path(plans, out)
    for file in (path, steps_path(path)):
        file.unlink(missing_ok=True)


def _training(
    plans: Sequence[Plan], recipe: Recipe, settings: Settings, device: torch.device
) -> Training:
    first = plans[0]
    seeds = [(plan, seed) for plan in plans for seed in plan.spec.seeds]
    return Training(
        [initial_module(plan, seed) for plan, seed in seeds],
        [Replica(seed, plan.spec.recipe_args["learning_rate"], plan.task) for plan, seed in seeds],
        first.task,
        recipe,
        device=device,
        dtype=DTYPES[first.spec.dtype],
        freeze=first.spec.freeze,
        engine=settings.engine,
    )


def training_code(plans: Sequence[Plan]) -> str:
    """The versions of the code that trains; other code doesn't continue a checkpoint."""
    plugins = digest_of([p.model_dump() for plan in plans for p in plugin_references(plan)])
    iclbench = metadata.version("iclbench")
    return f"{plugins[:16]} torch {torch.__version__} iclbench {iclbench}"


def _trained_models(plan: Plan, trained: Trained, rows: range) -> list[Model]:
    models = []
    for row, seed in zip(rows, plan.spec.seeds, strict=True):
        module = plan.architecture.build(plan.task.signature, plan.config)
        load_state(module, trained.states[row], "the trained state")
        models.append(Model(seed, module, trained.diverged_at[row]))
    return models
