"""Verifying a record: compute every fact again that is not about the past, and compare.

1. The record and its files must be whole, and its statistics those of its values.
2. The command is resolved again; `facts.py` compares the record with what follows from it.
3. Models are built again, from their formula or from the weights beside the record, and
   evaluated; `values.py` and `comparison.py` compare every value and every statistic. So is the
   held-out evaluation beside the record, if there is one.

What remains is `claims`, which only training again can test: `retraining.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..api.digits import ErrorKind
from ..api.errors import IclbenchError, RecordError
from ..api.grader import Grader
from ..api.record import Record
from ..api.results import Evaluation
from ..api.statistics import Curve, Statistics
from ..api.task import Axis, Task
from ..devices import find_device
from ..plugins import host
from ..precision import DTYPES, full_precision
from .code import require_plugins
from .comparison import (
    Check,
    compare_analyses,
    compare_curves,
    compare_statistics,
    same,
    same_statistics,
)
from .exclusive import exclusive
from .facts import compare_facts, recompute
from .grading import Grading, RecordedGrader
from .heldout import compare_held_out
from .measure import analyse, axes_of, measure
from .models import Model, given_models
from .objects import Objects
from .plan import Plan
from .statistics import Summary, summarize_run
from .store import read_record, read_values
from .values import Arithmetic, compare_values


@exclusive()
def verify(path: str | Path, device: str = "auto") -> list[Check]:
    """Compute every fact of a record again that is not about the past, and compare.

    Solvers and constructions are built again; trained and loaded models come from the weights
    beside the record. Nothing is measured where a fact that needs no measuring differs. Raises
    RecordError when the record or its files are damaged or contradict each other, and PluginError
    when a plugin is missing.
    """
    path = Path(path)
    record = read_record(path)
    require_plugins(path, record)
    try:
        return _verify(path, record, device)
    except IclbenchError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def _verify(path: Path, record: Record, device: str) -> list[Check]:
    _require_version(record)
    values = read_values(path, record.main.values)
    floor_values = read_values(path, record.main.floor.values)
    now = recompute(path, record)
    plan = now.evaluation_plan
    checks = list(compare_facts(record, now))
    if not all(check.holds for check in checks):
        return checks
    with full_precision(DTYPES[record.spec.dtype]):
        models = _in_order(given_models(plan), record)
        axes = axes_of(plan, models[0])
        _require_consistent(record.main, values, floor_values, axes, plan.task.errors)
        grader = _grader(path, record, plan)
        measured = measure(plan, models, find_device(device), 1024, grader=grader)
        analyses = analyse(plan, models, find_device(device))
    summary = summarize_run(measured.values, measured.floor_values, axes, plan.task.errors)
    parameters = sum(p.numel() for p in models[0].module.parameters())
    arithmetic = Arithmetic(
        plan.spec.dtype, plan.task.errors, measured.target_size, measured.floor_values
    )
    checks += [
        same("parameters", record.parameters, parameters),
        same("floor kind", record.main.floor.kind,
             plan.task.floor_kind if measured.floor_values else "none"),
        same("floor prompts", record.main.floor.prompts, _rows(measured.floor_values)),
        *compare_values("", values, measured.values, arithmetic),
        *compare_values("floor ", _as_seed(floor_values), _as_seed(measured.floor_values),
                        arithmetic),
        *_compare_summary(record, summary, arithmetic),
        *compare_analyses(record.analyses, analyses, record.spec.dtype),
        *_compare_grading(record, grader),
        *compare_held_out(path, record, device),
    ]  # fmt: skip
    return checks


def _require_version(record: Record) -> None:
    """Raise RecordError for another version of the task."""
    spec = record.spec
    task: type[Task[Any]] = host().load("task", spec.task, Task)
    if task.version != spec.task_version:
        raise RecordError(
            f"made with version {spec.task_version} of {spec.task}, "
            f"which is now version {task.version}"
        )


def _in_order(models: list[Model], record: Record) -> list[Model]:
    """The models in the order of the record's seeds."""
    by_seed = {model.seed: model for model in models}
    return [by_seed[seed.seed] for seed in record.seeds]


def _require_consistent(
    evaluation: Evaluation,
    values: Mapping[str, np.ndarray],
    floor_values: Mapping[str, np.ndarray],
    axes: Mapping[str, Axis],
    errors: Mapping[str, ErrorKind],
) -> None:
    """Raise RecordError for statistics and curves that don't follow from the recorded values."""
    ragged = [name for name, array in values.items() if len(array) != len(evaluation.seeds)]
    if ragged:
        raise RecordError(f"the values of {ragged[0]} are not those of its seeds")
    implied = summarize_run(values, floor_values, axes, errors)
    floor = evaluation.floor
    pairs: list[tuple[Mapping[str, Statistics | Curve], Mapping[str, Statistics | Curve]]] = [
        (evaluation.metrics, implied.metrics),
        (floor.metrics, implied.floor),
        (evaluation.curves, implied.curves),
        (floor.curves, implied.floor_curves),
        *zip(evaluation.seeds, implied.seeds, strict=True),
    ]
    for recorded, summarized in pairs:
        for name in {**recorded, **summarized}:
            known = name in recorded and name in summarized
            if not known or not same_statistics(recorded[name], summarized[name]):
                raise RecordError(f"its {name} is not that of its values")


def _compare_summary(record: Record, now: Summary, arithmetic: Arithmetic) -> list[Check]:
    """A check for every statistic and every point of a curve."""
    main, tolerance = record.main, arithmetic.tolerance()
    checks = [
        *compare_statistics("", main.metrics, now.metrics, tolerance),
        *compare_curves("", main.curves, now.curves, tolerance),
        *compare_curves("floor ", main.floor.curves, now.floor_curves, tolerance),
        *compare_statistics("floor ", main.floor.metrics, now.floor, tolerance),
    ]
    for seed, recorded, metrics in zip(record.seeds, main.seeds, now.seeds, strict=True):
        checks += compare_statistics(f"seed {seed.seed} ", recorded, metrics, tolerance)
    return checks


def _as_seed(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array[None] for name, array in values.items()}


def _rows(values: Mapping[str, np.ndarray]) -> int:
    return max((len(array) for array in values.values()), default=0)


def _grader(path: Path, record: Record, plan: Plan) -> Grading | RecordedGrader | None:
    """The grader of the record; for a paid one, the answers that it gave."""
    if record.grader is None or plan.grader is None:
        return None
    if record.grader.answers is None:
        raise RecordError("it names no file with its grader's answers")
    answers = Objects.beside(path).read(record.grader.answers)
    grader = plan.grader()
    return RecordedGrader(grader, answers) if grader.paid else plan.prepare_grading()


def _compare_grading(record: Record, grader: Grader | None) -> list[Check]:
    """Whether a paid grader's answers, which are not asked for again, are about these endings."""
    if not isinstance(grader, RecordedGrader):
        return []
    holds = grader.same == grader.total
    return [Check("graded endings, written again", grader.total, grader.same, holds)]
