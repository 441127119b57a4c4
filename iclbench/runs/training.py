"""Training the replicas of several plans as one program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import torch

from ..api.errors import Interrupted
from ..api.random import derive_seed
from ..api.record import TrainingReport
from ..api.spec import digest_of
from ..console import report
from ..plugins import host
from ..precision import DTYPES
from ..training.checkpoints import load_state
from ..training.loop import Trained, Training
from ..training.resumption import Resumption
from ..training.state import Replica
from .models import Model, given_models, initial_module, require_usable
from .plan import Plan
from .report import plugin_references, training_report
from .settings import Settings


class ReadyModels(NamedTuple):
    """One plan's models, to be evaluated, and how they were trained: None where nothing was."""

    models: list[Model]
    training: TrainingReport | None = None


def train_or_load(
    plans: Sequence[Plan], settings: Settings, device: torch.device
) -> Iterator[ReadyModels]:
    """Each plan's models in turn: trained as one program, or built or loaded, each when due."""
    if plans[0].recipe is not None:
        return train(plans, settings, device)
    return (ReadyModels(given_models(plan)) for plan in plans)


def train(plans: Sequence[Plan], settings: Settings, device: torch.device) -> Iterator[ReadyModels]:
    """Train one replica for each seed of each plan as one program; the plans share a `train_key`.

    All are trained before the first plan's models are yielded. Raises Interrupted after a signal.
    """
    require_usable(initial_module(plans[0], plans[0].spec.seeds[0]), plans[0])
    training = _training(plans, settings, device)
    if training.note:
        report(f"{plans[0].spec.model}: {training.note}")

    def observe(step: int, losses: list[float]) -> None:
        for plan, rows in zip(plans, rows_of(plans), strict=True):
            loss = losses[rows.start : rows.stop]
            host().notify("iclbench_training_step", spec=plan.spec, step=step, loss=loss)

    resumption = Resumption(
        checkpoint_path(plans, settings.out),
        settings.checkpoint_seconds,
        settings.resume and not settings.force,
        _code(plans),
    )
    try:
        trained = training.run(resumption, observe)
    except Interrupted as error:
        more = f" and {len(plans) - 1} more" if len(plans) > 1 else ""
        name = f"{plans[0].spec.model} on {plans[0].spec.task}{more}"
        raise Interrupted(error.signal_number, f"{name} {error}") from None
    for plan, rows in zip(plans, rows_of(plans), strict=True):
        report_of_plan = training_report(plan, trained, rows)
        yield ReadyModels(_trained_models(plan, trained, rows), report_of_plan)


def rows_of(plans: Sequence[Plan]) -> Iterator[range]:
    """Each plan's rows among all replicas: plans in order, and the seeds of each in order."""
    start = 0
    for plan in plans:
        yield range(start, start + len(plan.spec.seeds))
        start += len(plan.spec.seeds)


def checkpoint_path(plans: Sequence[Plan], out: Path) -> Path:
    """Where the program that trains these plans keeps its checkpoint."""
    name = plans[0].spec.id
    if len(plans) > 1:
        ids = "-".join(sorted({plan.spec.id for plan in plans}))
        name = f"{plans[0].train_key}-{derive_seed(ids):x}"
    return out / "checkpoints" / f"{name}.safetensors"


def _training(plans: Sequence[Plan], settings: Settings, device: torch.device) -> Training:
    first = plans[0]
    assert first.recipe is not None
    seeds = [(plan, seed) for plan in plans for seed in plan.spec.seeds]
    return Training(
        [initial_module(plan, seed) for plan, seed in seeds],
        [Replica(seed, plan.spec.recipe_args["learning_rate"], plan.task) for plan, seed in seeds],
        first.task,
        first.recipe,
        device=device,
        dtype=DTYPES[first.spec.dtype],
        freeze=first.spec.freeze,
        engine=settings.engine,
    )


def _code(plans: Sequence[Plan]) -> str:
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
