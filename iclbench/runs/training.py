"""Training the replicas of several plans as one program."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import metadata
from itertools import chain
from pathlib import Path

import torch

from ..api.errors import Interrupted, RecordError
from ..api.random import derive_seed
from ..api.recipe import Recipe
from ..api.spec import canonical_json
from ..console import report
from ..devices import free_memory
from ..files import unfinished
from ..plugins import host
from ..precision import DTYPES
from ..training.checkpoints import load_state
from ..training.loop import Observer, Trained, Training
from ..training.optimizers.installed import distributions_of
from ..training.resumption import Resumption
from ..training.schedules import fit_schedule
from ..training.state import Replica
from .budget import budget_report, fix_steps
from .exclusive import alone, is_trained_elsewhere
from .fixed_steps import FixedSteps, steps_path
from .models import Model, built_module, given_models, initial_module, require_usable
from .operations import count_operations
from .plan import Plan
from .preflight import require_sound_metrics
from .ready_models import ReadyModels, keep, kept
from .report import plugin_references, training_report
from .settings import Settings
from .validators import prepare_validation, validation_curve


def train_or_load(
    plans: Sequence[Plan], settings: Settings, device: torch.device
) -> Iterator[ReadyModels]:
    """Each plan's models in turn: trained as one program, or built or loaded, each when due."""
    if plans[0].recipe is None:
        return (_given(plan) for plan in plans)
    known = {} if _begun(plans, settings) else _all_kept(plans, settings.out, device)
    others = [plan for plan in plans if plan.spec.id not in known]
    trained: Iterator[ReadyModels] = iter(())
    if others:
        # The caller has locked the checkpoint of all; that of some may be another process's.
        some = alone(checkpoint_path(others, settings.out)) if known else nullcontext()
        with some:
            trained = train(others, settings, device)
            # Before any is evaluated, so that no evaluation is lost if training is interrupted.
            trained = chain([next(trained)], trained)
    return (known.pop(p.spec.id) if p.spec.id in known else next(trained) for p in plans)


def keep_trained(plan: Plan, ready: ReadyModels, out: Path, device: torch.device) -> None:
    """Write what was trained for a plan that gets no record now: its next run only evaluates."""
    if ready.training is None:
        return
    path = checkpoint_path([plan], out)
    try:
        keep(ready, path, training_code([plan]), device)
    except OSError as error:
        report(f"{path} can't be written: {error.strerror}")


def _begun(plans: Sequence[Plan], settings: Settings) -> bool:
    """Whether these plans, as one program, continue from a checkpoint or begin afresh."""
    several = len(plans) > 1 and checkpoint_path(plans, settings.out).exists()
    return several or not settings.resume


def _all_kept(plans: Sequence[Plan], out: Path, device: torch.device) -> dict[str, ReadyModels]:
    """What `keep_trained` left of these plans, by their runs' ids.

    A file that can't be used is replaced, where several are trained. Raises RecordError where it is
    that of the only one.
    """
    kept_by_id: dict[str, ReadyModels] = {}
    refused: dict[str, RecordError] = {}
    for plan in plans:
        path, name = checkpoint_path([plan], out), f"{plan.spec.model} on {plan.spec.task}"
        try:
            models = kept(path, training_code([plan]), device, partial(built_module, plan, "given"))
        except RecordError as error:
            refused[name] = error
            continue
        if models is not None:
            report(f"{name}: trained before, see {path}; evaluating it")
            kept_by_id[plan.spec.id] = models
    for name, reason in refused.items():
        if len(plans) - len(kept_by_id) == 1:
            raise reason
        report(f"{name} is trained again: {str(reason).partition(';')[0]}")
    return kept_by_id


def _given(plan: Plan) -> ReadyModels:
    models = given_models(plan)
    return ReadyModels(models, count_operations(plan, models[0].module))


def train(
    plans: Sequence[Plan], settings: Settings, device: torch.device, least_steps: int = 0
) -> Iterator[ReadyModels]:
    """Train one replica for each seed of each plan as one program; the plans share a `train_key`.

    All are trained before the first plan's models are yielded. They end where all have diverged,
    after `least_steps`. Raises Interrupted after a signal.
    """
    for plan in {canonical_json(plan.spec.model_args): plan for plan in plans}.values():
        module = initial_module(plan, plan.spec.seeds[0])
        require_usable(module, plan)
        require_sound_metrics(module, plan)
    resumption = Resumption(
        checkpoint_path(plans, settings.out),
        settings.checkpoint_seconds,
        settings.resume,
        training_code(plans),
    )
    training, fixed = _prepare(plans, resumption, settings, device)
    recipe = training.recipe  # with the schedule for these steps
    if training.note:
        report(f"{plans[0].spec.model}: {training.note}")
    validation = prepare_validation(plans, training, settings.eval_batch)
    training.validation = validation
    training.least_steps = least_steps
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
        fitted = replace(plan, recipe=recipe)
        operations = count_operations(fitted, models[0].module, trained.steps)
        yield ReadyModels(
            models,
            operations,
            training_report(plan, trained, rows),
            budget_report(trained, fixed),
            validation_curve(fitted, validation, trained, rows, operations),
            resumption.path,
        )


def _prepare(
    plans: Sequence[Plan], resumption: Resumption, settings: Settings, device: torch.device
) -> tuple[Training, FixedSteps]:
    """The training of the plans up to its first step, and how its steps were fixed."""
    first = plans[0]
    assert first.recipe is not None

    def make(recipe: Recipe) -> Training:
        return _training(plans, recipe, settings, device)

    fixed = fix_steps(first, make, resumption)
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


def remove_checkpoints(
    used: Collection[Path], plans: Sequence[Plan], out: Path, failed: Container[str]
) -> None:
    """Delete the checkpoints that the models of these plans came from, and each plan's own.

    If runs with these ids have `failed` since, what was kept of them stays; so does everything
    where nothing was kept of one of them.
    """
    own_paths = {plan.spec.id: checkpoint_path([plan], out) for plan in plans}
    kept_paths = [path for run_id, path in own_paths.items() if run_id in failed]
    if not all(path.exists() for path in kept_paths):
        return
    for path in {*used, *own_paths.values()}.difference(kept_paths):
        if path not in used and is_trained_elsewhere(path):
            continue
        for file in (path, steps_path(path), *unfinished(path)):
            file.unlink(missing_ok=True)


def _training(
    plans: Sequence[Plan], recipe: Recipe, settings: Settings, device: torch.device
) -> Training:
    first = plans[0]
    seeds = [(plan, seed) for plan in plans for seed in plan.spec.seeds]
    return Training(
        [initial_module(plan, seed) for plan, seed in seeds],
        [
            Replica(seed, plan.spec.recipe_args["learning_rate"], plan.task, plan.spec.id)
            for plan, seed in seeds
        ],
        first.task,
        recipe,
        device=device,
        dtype=DTYPES[first.spec.dtype],
        freeze=first.spec.freeze,
        engine=settings.engine,
    )


def training_code(plans: Sequence[Plan]) -> dict[str, str]:
    """The version of everything that trains, by name; other code doesn't continue a checkpoint."""
    references = [r for plan in plans for r in plugin_references(plan.trained_by)]
    return {
        "torch": torch.__version__,
        **{name: metadata.version(name) for plan in plans for name in packages_of(plan)},
        **{r.name: f"{r.distribution} {r.version} {r.source[:16]}" for r in references},
    }


def packages_of(plan: Plan) -> tuple[str, ...]:
    """The distributions that a training uses beside the harness's own and the plugins'."""
    return () if plan.recipe is None else distributions_of(plan.recipe.optimizer)


def _trained_models(plan: Plan, trained: Trained, rows: range) -> list[Model]:
    models = []
    for row, seed in zip(rows, plan.spec.seeds, strict=True):
        module = built_module(plan, "given")
        load_state(module, trained.states[row], "the trained state")
        models.append(Model(seed, module, trained.diverged_at[row]))
    return models
