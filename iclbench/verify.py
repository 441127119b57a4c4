"""Verifying a record: its digest, its model built again, and every metric measured again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from .config import parse_config
from .errors import RecordError
from .plans import Plan, resolve
from .precision import DTYPES, full_precision
from .records import Record, read_per_prompt, read_record, read_referenced
from .runner import find_device, given_models, measure
from .specs import RunSpec
from .statistics import Statistics, summarize

#: How far a statistic may move, relatively: other machines sum in another order.
RELATIVE = {"float32": 1e-3, "float64": 1e-6}
#: Near the floor an error is rounding alone: within this factor of it, …
NEAR_FLOOR = 1000.0
#: … a statistic may move by this many digits.
DIGITS = 0.5


@dataclass(frozen=True)
class Check:
    """One statistic of one metric, as recorded and as measured again."""

    metric: str
    statistic: str
    recorded: float | None
    measured: float | None
    holds: bool


def verify(path: Path, device: str = "auto") -> list[Check]:
    """Check a record and measure it again; raises RecordError when it is damaged.

    Solvers and constructions are built anew; trained and loaded models come from the weights file
    beside the record.
    """
    record = read_record(path)
    read_per_prompt(path, record)
    plan = _plan(path, record)
    digest = plan.task.evaluation_digest(record.spec.eval_prompts, record.spec.eval_seed)
    if digest != record.evaluation.digest:
        raise RecordError(f"{path}: the evaluation prompts are not those of the record")
    with full_precision(DTYPES[record.spec.dtype]):
        values, _ = measure(plan, given_models(plan), find_device(device), eval_batch=1024)
    now = {name: summarize(v) for name, v in values.items()}
    if set(now) != set(record.metrics):
        raise RecordError(f"{path}: the metrics measured now are others: {', '.join(sorted(now))}")
    return [
        _check(record, name, statistic, now[name])
        for name in record.metrics
        for statistic in ("mean", "median")
    ]


def _plan(path: Path, record: Record) -> Plan:
    spec = record.spec
    asked = {
        name: getattr(spec, name)
        for name in RunSpec.model_fields
        if name not in {"recipe", "recipe_args", "seeds", "init", "freeze", "perturb"}
    }
    if record.weights is not None:
        read_referenced(path, record.weights)
        asked["weights"], asked["weights_args"] = str(path.parent / record.weights.file), {}
    plan = resolve(parse_config(RunSpec, asked, str(path)))
    if plan.task.version != spec.task_version:
        raise RecordError(
            f"{path}: made with version {spec.task_version} of {spec.task}, "
            f"which is now version {plan.task.version}"
        )
    return plan


def _check(record: Record, name: str, statistic: str, now: Statistics) -> Check:
    recorded = getattr(record.metrics[name], statistic)
    measured = getattr(now, statistic)
    bottom = getattr(record.floor[name], statistic) if name in record.floor else None
    holds = agree(recorded, measured, bottom, RELATIVE[record.spec.dtype])
    return Check(name, statistic, recorded, measured, holds)


def agree(
    recorded: float | None, measured: float | None, floor: float | None, relative: float
) -> bool:
    """Whether two values of a statistic are the same within the stated tolerance."""
    if recorded is None or measured is None:
        return recorded is measured
    if abs(recorded - measured) <= relative * max(abs(recorded), abs(measured)):
        return True
    if floor is None or min(recorded, measured, floor) <= 0:
        return False
    near = max(recorded, measured) <= NEAR_FLOOR * floor
    return near and abs(math.log10(recorded / measured)) <= DIGITS
