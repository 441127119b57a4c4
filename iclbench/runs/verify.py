"""Verifying a record: compute every fact again that is not about the past, and compare.

1. The record and its files must be whole, and its statistics those of its values.
2. The command is resolved again; `facts.py` compares the record with what follows from it.
3. Models are built again, from their formula or from the weights beside the record, and
   evaluated; `values.py` and `comparison.py` compare every value and every statistic. So is the
   held-out evaluation beside the record, if there is one.

What remains is `claims`, which only training again can test: `retraining.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..api.errors import IclbenchError, RecordError, UsageError
from ..api.names import visible
from ..api.record import Record
from ..api.task import Task
from ..devices import find_device
from ..files import path_of
from ..plugins import host
from ..precision import DTYPES, full_precision
from .alike import seeds_alike
from .asked_answers import compare_answers_used
from .code import require_plugins
from .comparison import RELATIVE, Check, close, compare_analyses, same
from .cost_facts import compare_last_validation
from .exclusive import exclusive
from .facts import compare_facts, recompute
from .grading_facts import compare_grading, grader_of
from .heldout_evaluation import compare_held_out
from .measure import analyse, axes_of, measure
from .models import Model, given_models
from .plan import Plan
from .recorded import Recorded
from .rounding import measure_rounded
from .shifts import present_shifts, shifted_models, shifted_plan
from .state_size import state_sizes
from .store import read_record, read_values
from .strangers import TRUSTED, require_harmless
from .time_limit import time_limit


def verify(
    path: str | PathLike[str], device: str = "auto", *, trusted: bool = False
) -> list[Check]:
    """Compute every fact of a record again that is not about the past, and compare.

    Solvers and constructions are built again; trained and loaded models come from the weights
    beside the record. Nothing is measured where a fact that needs no measuring differs. `path` is
    that of one record, or the record; `RecordStore(folder).paths()` are those of a folder. Raises
    RecordError when the record or its files are damaged or contradict each other, and PluginError
    when a plugin is missing.

    Without `trusted`, a record is refused that names a file, a folder, a dataset of the hub or an
    optimizer to import: whoever made it would choose what this machine reads and runs. So is one
    that takes more than half an hour.
    """
    return _checked(path_of(path), device, trusted=trusted, hint=TRUSTED)


@exclusive()
def _checked(path: Path, device: str, *, trusted: bool, hint: str) -> list[Check]:
    """The checks of `verify`; the reason why a stranger's record is refused ends with `hint`."""
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder: verify each path of RecordStore({str(path)!r}).paths()"
        )
    record = read_record(path)
    require_plugins(path, record)
    try:
        if trusted:
            return _verify(path, record, device)
        require_harmless(record, hint)
        with time_limit(hint):
            return _verify(path, record, device)
    except IclbenchError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def require_holding(
    path: Path, device: str = "auto", *, trusted: bool = False, hint: str = TRUSTED
) -> list[Check]:
    """The checks of `verify`; raises RecordError unless all of them hold.

    The reason why a stranger's record is refused ends with `hint`.
    """
    checks = _checked(path, device, trusted=trusted, hint=hint)
    failing = [check for check in checks if not check.holds]
    if failing:
        raise RecordError(
            f"{path}: of {len(checks)} facts, {len(failing)} differ: {failing[0].difference}"
        )
    return checks


def _verify(path: Path, record: Record, device: str) -> list[Check]:
    _require_version(record)
    now = recompute(path, record)
    plan = now.evaluation_plan
    checks = list(compare_facts(record, now))
    if not all(check.holds for check in checks):
        return checks
    on_device = find_device(device)
    with full_precision(DTYPES[record.spec.dtype]):
        models = _in_order(given_models(plan), record)
        recorded = Recorded(path, "", record.main, [seed.seed for seed in record.seeds])
        recorded.require_consistent(plan, axes_of(plan, models[0]))
        grader = grader_of(path, record, plan)
        measured = measure(plan, models, on_device, grader=grader)
        parameters = sum(p.numel() for p in models[0].module.parameters())
        checks += [
            same("parameters", record.parameters, parameters),
            *_compare_state(record, models[0].module, plan),
            *recorded.compare(
                plan,
                axes_of(plan, models[0]),
                measured,
                lambda: measure_rounded(plan, models, on_device),
            ),
            *compare_analyses(record.analyses, analyse(plan, models, on_device), record.spec.dtype),
            *compare_grading(path, record, plan, grader),
            *compare_answers_used(record, models),
            *compare_last_validation(record, plan, models, on_device),
            *_compare_seeds(path, record),
        ]
        for name in present_shifts(record):
            checks += _compare_shift(path, record, shifted_plan(plan, name), models, on_device)
        checks += compare_held_out(path, record, device)
    return checks


def _compare_shift(
    path: Path, record: Record, shifted: Plan, models: list[Model], device: torch.device
) -> list[Check]:
    """A check for everything that a record says of its models under one shift."""
    name = shifted.task.shift
    fitting = shifted_models(shifted, models)
    reason = visible(fitting, 200) if isinstance(fitting, str) else None
    applies = same(f"shift {name} not applicable", record.not_applicable.get(name), reason)
    if isinstance(fitting, str) or not applies.holds:
        return [applies]
    measured = measure(shifted, fitting, device)
    axes = axes_of(shifted, fitting[0])
    evaluation = record.evaluations[name]
    recorded = Recorded(path, f"shift {name} ", evaluation, [seed.seed for seed in record.seeds])
    recorded.require_consistent(shifted, axes)
    size = measured.target_size if shifted.task.scales_targets else None
    holds = close(evaluation.target_size, size, RELATIVE[shifted.spec.dtype])
    return [
        applies,
        Check(f"shift {name} target size", evaluation.target_size, size, holds),
        *recorded.compare(
            shifted, axes, measured, lambda: measure_rounded(shifted, fitting, device)
        ),
    ]


def _require_version(record: Record) -> None:
    """Raise RecordError for another version of the task."""
    spec = record.spec
    task: type[Task[Any]] = host().load("task", spec.task, Task)
    if task.version != spec.task_version:
        raise RecordError(
            f"made with version {spec.task_version} of {spec.task}, "
            f"which is now version {task.version}"
        )


def _compare_seeds(path: Path, record: Record) -> Iterator[Check]:
    """A check that trained seeds are trainings of their own; their values have been verified.

    Seeds that begin with the same given weights may stay near them.
    """
    seeds = [seed.seed for seed in record.seeds]
    if record.spec.origin == "trained" and record.spec.init is None and len(seeds) > 1:
        alike = seeds_alike(seeds, read_values(path, record.main.values))
        yield same("seeds with the answers of another", alike, [])


def _compare_state(record: Record, module: nn.Module, plan: Plan) -> Iterator[Check]:
    """A check of the size of the state, which older records do not tell."""
    if record.state_sizes is not None:
        computed = state_sizes(module, plan.task.signature.length)
        yield same("state sizes", record.state_sizes, computed)


def _in_order(models: list[Model], record: Record) -> list[Model]:
    """The models in the order of the record's seeds."""
    by_seed = {model.seed: model for model in models}
    return [by_seed[seed.seed] for seed in record.seeds]
