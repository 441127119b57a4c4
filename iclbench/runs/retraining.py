"""Training a record's models again, which tests what `verify` can't compute.

On a CPU, training on the same platform gives the same bits. A platform is the device, the processor
with its vector instructions, the number of threads, the versions of torch, numpy and Python, and
the program that computes gradients with the number of models that it trains at once. Elsewhere,
with other code, or where the first training changed its platform on the way, rounding differs and
training amplifies it: then losses and results must be within `ELSEWHERE`. On a GPU some operators
add in any order, and some kernels are chosen by timing, so the same bits are not required there.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import cast, get_args

import numpy as np
import torch

from ..api.errors import RecordError
from ..api.record import MAIN, Environment, Proof, Record, TrainingReport
from ..api.results import FileReference
from ..api.spec import ResolvedSpec, RunSpec
from ..devices import environment, find_device
from ..files import file_digest, path_of
from ..nn.training_form import tensors_of
from ..precision import DTYPES, full_precision
from ..training.checkpoints import load_weights
from ..training.gradients.choice import EngineName
from ..training.platforms import differing_names, moved_names, platform_of
from ..training.threads import torch_threads
from .code import checking_code, other_code, require_plugins
from .comparison import Check, absolute, close
from .cost_facts import compare_costs_again
from .exclusive import exclusive
from .fixed_steps import FixedSteps
from .measure import Measured, measure
from .models import Model, initial_module
from .objects import Objects
from .origins import States
from .plan import Plan, resolve
from .ready_models import ReadyModels
from .report import date_now
from .settings import Settings
from .store import read_record, read_values
from .strangers import TRUSTED, require_harmless
from .training import packages_of, train

#: On another platform: how far the first loss of the curve may move, relatively, …
FIRST_LOSS = 0.01
#: … half of all losses, as a natural logarithm, …
LOSSES = 0.1
#: … and each seed's mean digits; a metric that is no error may move by this part.
RESULT = 0.3
#: Weights may be apart by this part of the way that training went.
WEIGHTS = 0.5
ELSEWHERE = (
    f"first losses within {FIRST_LOSS:.0%}, half of all losses within {LOSSES:.0%}, "
    f"weights within {WEIGHTS:.0%} of the way, results within {RESULT} digits or {RESULT:.0%}"
)
#: The claimed time must be at least the measured one divided by this: others may share a machine.
FASTER = 30.0
#: The most threads to train with, however many a record claims.
MOST_THREADS = 1024

#: What `claims` lists and training again tests.
TESTED = frozenset({"trained by this recipe", "seconds of training", "training curve", "diverged"})


@dataclass(frozen=True)
class Retraining:
    """What training again gave: the checks, and the record with its proof if all hold.

    `outcome` says in words what that shows; it is empty where a check does not hold.
    """

    checks: list[Check]
    record: Record | None
    outcome: str = ""


@exclusive()
def retrain(path: str | PathLike[str], device: str = "auto", trusted: bool = False) -> Retraining:
    """Train the models of a verified record again and compare everything that was only claimed.

    The file stays as it is: `Retraining.record` has the proof. A record without training has no
    checks and no proof. Raises RecordError where training can't be repeated: on another device,
    without a checkpoint, or where the installed code makes another run of the record's command,
    and PluginError where a plugin of the record is missing. `trusted` is as for `verify`.
    """
    path = path_of(path)
    record = read_record(path)
    require_plugins(path, record)
    if not trusted:
        require_harmless(record, TRUSTED)
    if record.spec.origin in {"solver", "constructed", "asked"}:
        return Retraining([], None, "nothing to train again")
    on_device = find_device(device)
    plan = _plan(path, record, environment(on_device))
    assert record.training is not None
    threads = max(1, min(record.environment.threads, MOST_THREADS))
    with torch_threads(threads), full_precision(DTYPES[record.spec.dtype]):
        ready = _train(plan, record.training, on_device)
        here = environment(on_device, packages_of(plan))
        measured = measure(plan, ready.models, on_device)
    assert ready.training is not None
    trainings = [(record.environment, record.training), (here, ready.training)]
    platforms = [platform_of(where, how.engine, how.replicas) for where, how in trainings]
    differing = differing_names(*platforms)
    if moved_names(record.training.note):
        differing.append("platform from start to end")
    same_bits = _same_bits(path, record, ready.models)
    changed = other_code(record)
    required = on_device.type == "cpu" and not changed
    exactly = not differing and (same_bits or required)
    if exactly:
        checks = list(_compare_exactly(record, ready, same_bits))
    else:
        checks = list(_compare_roughly(path, record, ready.training, measured, plan))
        checks.append(_compare_weights(path, record, ready.models, plan))
    checks.append(_compare_seconds(record.training, ready.training))
    checks += compare_costs_again(record, ready, exactly=exactly)
    if not all(check.holds for check in checks):
        return Retraining(checks, None)
    tolerance = None if same_bits else ELSEWHERE
    proof = Proof(
        kind="retrained",
        created=date_now(),
        environment=here,
        same_bits=same_bits,
        tolerance=tolerance,
        plugins=checking_code(record),
    )
    by = f" by other code ({', '.join(changed)})" if changed else ""
    cause = f" (not the same {', '.join(differing)})" if differing else ""
    outcome = f"trained again{by}: " + (
        "the weights have the same bits"
        if same_bits
        else f"with other rounding{cause}; {tolerance}"
    )
    return Retraining(checks, _proved(record, proof, ready, measured.seconds), outcome)


def _plan(path: Path, record: Record, here: Environment) -> Plan:
    """The plan that trains; raises RecordError where training can't be repeated here."""
    spec = record.spec
    if spec.origin == "loaded":
        raise RecordError(f"{path}: its weights were loaded; their training can't be repeated")
    if record.environment.device != here.device:
        raise RecordError(f"{path}: trained on {record.environment.device}, not on {here.device}")
    request = RunSpec.from_command(record.command)
    if spec.checkpoint_digest is not None:
        request = request.model_copy(update={"init": str(_checkpoint(path, spec))})
    plan = resolve(request)
    if plan.spec.id != record.id:
        raise RecordError(f"{path}: its command is that of run {plan.spec.id}")
    # Another machine would fix other steps for the same budget.
    return replace(plan, fixed=FixedSteps.of(record))


def _checkpoint(path: Path, spec: ResolvedSpec) -> Path:
    """The file that training began with, where the record says or beside it, or RecordError."""
    reference = FileReference(sha256=str(spec.checkpoint_digest), format="safetensors")
    for file in (Path(str(spec.init)), Objects.beside(path).path(reference)):
        if file.is_file() and file_digest(file) == spec.checkpoint_digest:
            return file
    raise RecordError(f"{path}: its checkpoint {spec.init} is not here")


def _train(plan: Plan, training: TrainingReport, device: torch.device) -> ReadyModels:
    """Train again, with the same program where it can be asked for."""
    name, _, graph = training.engine.partition(" ")
    if graph and name != "compiled":
        name = "graph"  # chooses as the run did; other names take no graph
    engine = cast("EngineName", name if name in get_args(EngineName) else "auto")
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder), str(device), resume=False, engine=engine)
        # A run that diverged went on beside one that did not.
        return next(train([plan], settings, device, training.steps))


def _weights(path: Path, record: Record) -> States:
    assert record.weights_file is not None
    return load_weights(Objects.beside(path).path(record.weights_file)).states


def _same_bits(path: Path, record: Record, models: Sequence[Model]) -> bool:
    states = _weights(path, record)
    for model in models:
        now = tensors_of(model.module)
        before = states.get(model.seed, {})
        if before.keys() != now.keys():
            return False
        if not all(torch.equal(before[name], now[name].detach().cpu()) for name in now):
            return False
    return True


def _compare_exactly(record: Record, ready: ReadyModels, same_bits: bool) -> Iterator[Check]:
    before, now = record.training, ready.training
    assert before is not None
    assert now is not None
    yield _bits("weights, trained again", same_bits)
    curves = [before.curve_steps, before.curve], [now.curve_steps, now.curve]
    yield _bits("training curve, again", curves[0] == curves[1])
    diverged = [seed.diverged_at for seed in record.seeds]
    again = [model.diverged_at for model in ready.models]
    yield Check("diverged at, again", diverged, again, diverged == again)


def _bits(name: str, are_same: bool) -> Check:
    return Check(name, "its bits", "the same bits" if are_same else "other bits", are_same)


def _compare_roughly(
    path: Path, record: Record, now: TrainingReport, measured: Measured, plan: Plan
) -> Iterator[Check]:
    before = record.training
    assert before is not None
    losses = [_losses(before), _losses(now)]
    yield Check("training steps, again", before.steps, now.steps, before.steps == now.steps)
    if losses[0].shape != losses[1].shape:
        yield Check("training curve, again", losses[0].shape, losses[1].shape, False)
        return
    moved = np.abs(np.log(losses[0] / losses[1]))
    first, half = (float(np.max(moved[:1])), float(np.median(moved))) if moved.size else (0.0, 0.0)
    yield Check("first loss, again", 0.0, first, first <= FIRST_LOSS)
    yield Check("half of the losses, again", 0.0, half, half <= LOSSES)
    metric = plan.task.primary.metric
    values = read_values(path, {metric: record.main.values[metric]})[metric]
    kind = plan.task.errors.get(metric)
    for i, seed in enumerate(record.seeds):
        a, b = (_result(v[i], kind) for v in (values, measured.values[metric]))
        holds = abs(a - b) <= RESULT if kind else close(a, b, RESULT)
        yield Check(f"seed {seed.seed} {metric}, again", a, b, bool(holds))


def _compare_weights(path: Path, record: Record, models: Sequence[Model], plan: Plan) -> Check:
    """How far the weights are from the record's, as a part of the way that training went."""
    states = _weights(path, record)
    apart = way = 0.0
    for model in models:
        with full_precision(DTYPES[plan.spec.dtype]):
            start = dict(initial_module(plan, model.seed or 0).named_parameters())
        for name, now in model.module.named_parameters():
            recorded = states.get(model.seed, {}).get(name)
            if recorded is None or recorded.shape != now.shape:
                return Check("weights, trained again", name, f"no {name}", False)
            apart += float((recorded - now.detach().cpu()).double().square().sum())
            way += float((start[name].detach() - now.detach().cpu()).double().square().sum())
    part = math.sqrt(apart / way) if way else float(apart > 0)
    return Check("way from the weights, trained again", 0.0, part, part <= WEIGHTS)


def _losses(training: TrainingReport) -> np.ndarray:
    """The losses (points, seeds); those that are not finite count as very large."""
    rows = [[1e300 if loss is None else max(abs(loss), 1e-300) for loss in row]
            for row in training.curve]  # fmt: skip
    return np.array(rows)


def _result(values: np.ndarray, kind: str | None) -> float:
    """The mean digits of an error, the mean of another metric."""
    if kind is None:
        return float(np.nanmean(values))
    errors = np.nan_to_num(absolute(values, kind), nan=1e300, posinf=1e300)
    return float(-np.log10(np.maximum(errors, np.finfo(np.float64).tiny)).mean())


def _compare_seconds(before: TrainingReport, now: TrainingReport) -> Check:
    holds = before.seconds >= now.seconds / FASTER and math.isfinite(before.seconds)
    return Check("seconds of training, again", before.seconds, now.seconds, holds)


def _proved(record: Record, proof: Proof, again: ReadyModels, seconds: float) -> Record:
    """The record with its proof.

    With the same bits, what its author claimed about the past gives way to what happened here.
    """
    changes: dict[str, object] = {"proof": proof}
    if proof.same_bits:
        changes |= {
            "training": again.training,
            "budget": again.budget,
            "validation_curve": again.validation_curve or record.validation_curve,
            "environment": proof.environment,
            "plugins": proof.plugins,
            "created": proof.created,
            "evaluations": {
                **record.evaluations,
                MAIN: record.main.model_copy(update={"seconds": seconds}),
            },
        }
    proved = record.model_copy(update=changes)
    missing = {n: why for n, why in record.missing.items() if getattr(proved, n) is None}
    return proved.model_copy(update={"missing": missing}).sealed()
