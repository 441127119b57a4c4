"""Verifying a record: its digests, its model built again, and all its numbers measured again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..api.config import parse_config
from ..api.errors import RecordError
from ..api.grader import Grader
from ..api.record import Record
from ..api.spec import RunSpec
from ..api.statistics import Curve, Statistics
from ..console import report
from ..devices import find_device
from ..precision import DTYPES, full_precision
from .grading import RecordedGrader
from .models import Model, given_models
from .plan import Plan, resolve
from .run import analyse, axes_of, changed_plugins, measure
from .statistics import curve, graded, summarize
from .store import read_per_prompt, read_record, read_referenced

#: How far a statistic may move, relatively: other machines sum in another order.
RELATIVE = {"float32": 1e-3, "float64": 1e-6}
#: A floor is arithmetic if its median is at most this many squares of the dtype's epsilon; …
ARITHMETIC = 1e4
#: … then an error within this factor of the floor measured now is rounding alone, …
NEAR_FLOOR = 1000.0
#: … and may move by this many digits.
DIGITS = 0.5


@dataclass(frozen=True)
class Check:
    """One number of the record, and what was measured again."""

    name: str
    recorded: float | None
    measured: float | None
    holds: bool


def verify(path: str | Path, device: str = "auto") -> list[Check]:
    """Measure a record again and compare every number that it reports of the model.

    Solvers and constructions are built anew; trained and loaded models come from the weights file
    beside the record. Raises RecordError when the record or its files are damaged, contradict each
    other, or were made on other prompts.
    """
    path = Path(path)
    record = read_record(path)
    plan = _plan(path, record)
    digest = plan.task.evaluation_digest(record.spec.eval_prompts, record.spec.eval_seed)
    if digest != record.evaluation.digest:
        raise RecordError(f"{path}: the evaluation prompts are not those of the record")
    if record.evaluation.provenance != plan.task.provenance:
        raise RecordError(f"{path}: the data of {record.spec.task} are not those of the record")
    _require_consistent(path, record)
    for name in changed_plugins(plan, record):
        report(f"{path}: plugin {name} has changed since this record")
    with full_precision(DTYPES[record.spec.dtype]):
        models = given_models(plan)
        grader = _grader(path, record, plan)
        values, bottom = measure(plan, models, find_device(device), 1024, grader=grader)
        analyses = analyse(plan, models, find_device(device))
    parameters = sum(p.numel() for p in models[0].module.parameters())
    checks = [
        Check("parameters", record.parameters, parameters, record.parameters == parameters),
        *_compare(record, plan, "", record.metrics, values=values, bottom=bottom),
        *_compare_curves(record, plan, models[0], values, bottom),
    ]
    floors = {name: v[None] for name, v in bottom.items()}
    checks += _compare(record, plan, "floor ", record.floor, values=floors, bottom=bottom)
    for i, seed in enumerate(record.seeds):
        own = {name: v[i : i + 1] for name, v in values.items()}
        label = f"seed {seed.seed} "
        checks += _compare(record, plan, label, seed.metrics, values=own, bottom=bottom)
    checks += _compare_analyses(record, analyses)
    if isinstance(grader, RecordedGrader):
        # A paid grader is not asked again: its answers count for the endings that they are about.
        same = grader.same == grader.total
        checks.append(Check("graded endings, written again", grader.total, grader.same, same))
    return checks


def _grader(path: Path, record: Record, plan: Plan) -> Grader | None:
    """The grader, or for one that is paid the answers that it gave."""
    if record.grader is None or plan.grader is None:
        return None
    answers = record.grader.answers
    if answers is None:
        raise RecordError(f"{path} names no file of its grader's answers")
    data = read_referenced(path, answers)
    grader = plan.grader()
    return RecordedGrader(grader, data) if grader.paid else plan.grading()


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


def _require_consistent(path: Path, record: Record) -> None:
    """The statistics must be those of the prompts' values, which rank the record."""
    arrays = read_per_prompt(path, record)
    groups = [("metric/", record.metrics), ("floor/", record.floor)]
    groups += [("metric/", seed.metrics) for seed in record.seeds]
    for index, (prefix, reported) in enumerate(groups):
        for name, found in reported.items():
            values = arrays[prefix + name] if prefix + name in arrays else np.full((1, 1), np.nan)
            values = values[None] if prefix == "floor/" else values
            values = values[index - 2 : index - 1] if index >= 2 else values
            own = summarize(graded(name, values))
            if not all(_close(a, b, 1e-9) for _, a, b in _pairs(found, own)):
                raise RecordError(f"{path}: its {name} is not that of {record.per_prompt.file}")


def _compare(
    record: Record,
    plan: Plan,
    label: str,
    reported: dict[str, Statistics],
    *,
    values: dict[str, np.ndarray],
    bottom: dict[str, np.ndarray],
) -> Iterator[Check]:
    """Every statistic that is reported, and each point of a curve over a second axis."""
    if set(reported) != set(values):
        yield Check(f"{label}metrics", len(reported), len(values), False)
        return
    for name, found in reported.items():
        own = summarize(graded(name, values[name]))
        floor = summarize(graded(name, bottom[name][None])) if name in bottom else None
        for statistic, a, b in _pairs(found, own):
            at = getattr(floor, _floor_statistic(statistic)) if floor else None
            holds = _holds(name, plan, a, b, floor=at, median=floor.median if floor else None)
            yield Check(f"{label}{name} {statistic}", a, b, holds)


def _compare_analyses(record: Record, measured: dict[str, Any]) -> Iterator[Check]:
    """Numbers of one list are compared beside the largest of them.

    Besides, those of a list may differ by 100ε, and single ones, as errors are, by 10⁴ε².
    """
    relative = RELATIVE[record.spec.dtype]
    eps = float(np.finfo(record.spec.dtype).eps)
    reported, own = dict(_numbers("", record.analyses)), dict(_numbers("", measured))
    for name in sorted({*reported, *own}):
        (a, beside), (b, _) = reported.get(name, (None, 0.0)), own.get(name, (None, 0.0))
        holds = name in reported and name in own and a is b is None
        if a is not None and b is not None:
            rounding = 100 * eps if beside else ARITHMETIC * eps**2
            holds = abs(a - b) <= max(relative * max(abs(a), abs(b), beside), rounding)
        yield Check(f"analysis{name}", a, b, holds)


def _numbers(
    place: str, content: Any, beside: float = 0.0
) -> Iterator[tuple[str, tuple[float | None, float]]]:
    """Every number in a JSON document by its place, with the largest of the list it stands in."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(f"{place} {key}", value)
    elif isinstance(content, list):
        largest = max((abs(v) for v in content if isinstance(v, int | float)), default=0.0)
        for index, value in enumerate(content):
            yield from _numbers(f"{place} {index}", value, largest)
    elif content is None or isinstance(content, int | float):
        yield place, (content, beside)


def _compare_curves(
    record: Record,
    plan: Plan,
    model: Model,
    values: dict[str, np.ndarray],
    bottom: dict[str, np.ndarray],
) -> Iterator[Check]:
    axes = axes_of(plan, model)
    floors = {name: curve(bottom[name][None], axes[name]) for name in record.floor_curves}
    for name, points in record.curves.items():
        own = curve(values[name], axes[name])
        yield from _compare_curve(name, points, own, floors.get(name), plan)
    for name, points in record.floor_curves.items():
        yield from _compare_curve(f"floor {name}", points, floors[name], floors[name], plan)


def _compare_curve(
    label: str, points: Curve, own: Curve, floor: Curve | None, plan: Plan
) -> Iterator[Check]:
    for statistic in ("mean", "median", "max"):
        nothing: list[float | None] = [None] * len(own.values)
        floors = nothing if floor is None else getattr(floor, statistic)
        medians = nothing if floor is None else floor.median
        rows = zip(
            getattr(points, statistic), getattr(own, statistic), floors, medians, strict=True
        )
        for at, (a, b, c, median) in zip(points.values, rows, strict=True):
            holds = _holds(label.removeprefix("floor "), plan, a, b, floor=c, median=median)
            yield Check(f"{label} {statistic} at {at:g}", a, b, holds)


def _pairs(
    recorded: Statistics, measured: Statistics
) -> Iterator[tuple[str, float | None, float | None]]:
    for name in Statistics.model_fields:
        yield name, getattr(recorded, name), getattr(measured, name)


def _holds(
    name: str,
    plan: Plan,
    recorded: float | None,
    measured: float | None,
    *,
    floor: float | None,
    median: float | None,
) -> bool:
    """Whether a metric's statistic agrees, given the floor's own and the floor's median."""
    relative = RELATIVE[plan.spec.dtype]
    if _close(recorded, measured, relative):
        return True
    a, b, c, m = (_square(value, name, plan) for value in (recorded, measured, floor, median))
    return agree(a, b, _rounding(c, m, plan), relative)


def _square(value: float | None, name: str, plan: Plan) -> float | None:
    """A statistic of a metric as a squared error, which is what rounding is told by."""
    scale = plan.task.scales.get(name)
    if value is None or scale is None:
        return value
    return value**2 if scale == "first" else 10.0**-value


def _rounding(value: float | None, median: float | None, plan: Plan) -> float | None:
    """A floor's statistic, if it is that of rounding rather than of noise or too few examples.

    It is at least ε²: a reference that computes as the target does is no exact one.
    """
    square = float(np.finfo(plan.spec.dtype).eps) ** 2
    if value is None or median is None or median > ARITHMETIC * square:
        return None
    return max(value, square)


def _floor_statistic(statistic: str) -> str:
    # The bounds are the mean's, and the low quantiles of the floor are too low to measure by.
    return "mean" if statistic in {"mean", "low", "high", "q95"} else "median"


def agree(
    recorded: float | None, measured: float | None, floor: float | None, relative: float
) -> bool:
    """Whether two values of a statistic are the same within the stated tolerance."""
    if _close(recorded, measured, relative):
        return True
    if recorded is None or measured is None or floor is None:
        return False
    if min(recorded, measured, floor) <= 0:
        return False
    near = max(recorded, measured) <= NEAR_FLOOR * floor
    return near and abs(math.log10(recorded / measured)) <= DIGITS


def _close(a: float | None, b: float | None, relative: float) -> bool:
    if a is None or b is None:
        return a is b
    return abs(a - b) <= relative * max(abs(a), abs(b))
