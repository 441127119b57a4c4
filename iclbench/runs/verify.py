"""Verifying a record: check its digests, rebuild its models, measure its numbers again.

`comparison.py` says when two numbers agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..api.config import parse_config
from ..api.errors import RecordError
from ..api.grader import Grader
from ..api.record import Record
from ..api.spec import RunSpec, spec_options
from ..api.statistics import Statistics
from ..console import report
from ..devices import find_device
from ..precision import DTYPES, full_precision
from .comparison import (
    Check,
    Tolerance,
    compare_analyses,
    compare_curves,
    compare_statistics,
    same_statistics,
)
from .exclusive import exclusive
from .grading import RecordedGrader
from .measure import analyse, axes_of, measure
from .models import given_models
from .plan import Plan, resolve
from .reuse import changed_plugins
from .statistics import Summary, summarize_run
from .store import read_per_prompt, read_record, read_referenced


@exclusive()
def verify(path: str | Path, device: str = "auto") -> list[Check]:
    """Measure a record again and compare every number that it reports about the model.

    Solvers and constructions are built again; trained and loaded models come from the weights
    file beside the record. Raises RecordError when the record or its files are damaged,
    contradict each other, or were made with other prompts.
    """
    path = Path(path)
    record = read_record(path)
    plan = _evaluation_plan(path, record)
    _require_same_prompts(path, record, plan)
    _require_consistent(path, record)
    for name in changed_plugins(plan, record):
        report(f"{path}: plugin {name} has changed since this record")
    with full_precision(DTYPES[record.spec.dtype]):
        models = given_models(plan)
        grader = _grader(path, record, plan)
        measured = measure(plan, models, find_device(device), 1024, grader=grader)
        analyses = analyse(plan, models, find_device(device))
    axes = axes_of(plan, models[0])
    summary = summarize_run(measured.values, measured.floor_values, axes, plan.task.errors)
    parameters = sum(p.numel() for p in models[0].module.parameters())
    checks = [
        Check("parameters", record.parameters, parameters, record.parameters == parameters),
        *_compare(record, summary, Tolerance(record.spec.dtype, plan.task.errors)),
        *compare_analyses(record.analyses, analyses, record.spec.dtype),
    ]
    if isinstance(grader, RecordedGrader):
        # A paid grader is not asked again; its recorded answers must be about the same endings.
        same = grader.same == grader.total
        checks.append(Check("graded endings, written again", grader.total, grader.same, same))
    return checks


def _compare(record: Record, now: Summary, tolerance: Tolerance) -> list[Check]:
    """A check for every statistic and every point of a curve."""
    checks = [
        *compare_statistics("", record.metrics, now.metrics, now.floor, tolerance),
        *compare_curves("", record.curves, now.curves, now.floor_curves, tolerance),
        *compare_curves(
            "floor ", record.floor_curves, now.floor_curves, now.floor_curves, tolerance
        ),
        *compare_statistics("floor ", record.floor, now.floor, now.floor, tolerance),
    ]
    if len(record.seeds) != len(now.seeds):
        return [*checks, Check("seeds", len(record.seeds), len(now.seeds), False)]
    for seed, metrics in zip(record.seeds, now.seeds, strict=True):
        label = f"seed {seed.seed} "
        checks += compare_statistics(label, seed.metrics, metrics, now.floor, tolerance)
    return checks


def _evaluation_plan(path: Path, record: Record) -> Plan:
    """The plan that evaluates the record's models without training them."""
    spec = record.spec
    request = {
        name: getattr(spec, name) for name, option in spec_options().items() if not option.training
    }
    if record.weights is not None:
        read_referenced(path, record.weights)
        request |= {"weights": str(path.parent / record.weights.file), "weights_args": {}}
    plan = resolve(parse_config(RunSpec, request, str(path)))
    if plan.task.version != spec.task_version:
        raise RecordError(
            f"{path}: made with version {spec.task_version} of {spec.task}, "
            f"which is now version {plan.task.version}"
        )
    return plan


def _require_same_prompts(path: Path, record: Record, plan: Plan) -> None:
    """Raise RecordError for other evaluation prompts, or other data behind them."""
    digest = plan.task.evaluation_digest(record.spec.eval_prompts, record.spec.eval_seed)
    if digest != record.evaluation.digest:
        raise RecordError(f"{path}: the evaluation prompts are not those of the record")
    if record.evaluation.provenance != plan.task.provenance:
        raise RecordError(f"{path}: the data of {record.spec.task} are not those of the record")


def _require_consistent(path: Path, record: Record) -> None:
    """Raise RecordError for statistics that don't follow from the prompts' recorded values."""
    arrays = read_per_prompt(path, record)
    contradiction = f"is not that of {record.per_prompt.file}"

    def values(prefix: str, names: Mapping[str, Statistics]) -> dict[str, np.ndarray]:
        missing = [name for name in names if prefix + name not in arrays]
        if missing:
            raise RecordError(f"{path}: its {missing[0]} {contradiction}")
        return {name: arrays[prefix + name] for name in names}

    if not record.metrics:
        raise RecordError(f"{path} reports no metrics")
    errors = {name: s.digits.error for name, s in record.metrics.items() if s.digits}
    metrics, floor = values("metric/", record.metrics), values("floor/", record.floor)
    implied = summarize_run(metrics, floor, {}, errors)
    if len(implied.seeds) != len(record.seeds):
        raise RecordError(f"{path}: its number of seeds {contradiction}")
    pairs = [(record.metrics, implied.metrics), (record.floor, implied.floor)]
    pairs += [(s.metrics, m) for s, m in zip(record.seeds, implied.seeds, strict=True)]
    for recorded, summarized in pairs:
        for name, statistics in recorded.items():
            if name not in summarized or not same_statistics(statistics, summarized[name]):
                raise RecordError(f"{path}: its {name} {contradiction}")


def _grader(path: Path, record: Record, plan: Plan) -> Grader | None:
    """The grader of the record; for a paid one, the answers that it gave."""
    if record.grader is None or plan.grader is None:
        return None
    if record.grader.answers is None:
        raise RecordError(f"{path} names no file with its grader's answers")
    answers = read_referenced(path, record.grader.answers)
    grader = plan.grader()
    return RecordedGrader(grader, answers) if grader.paid else plan.prepare_grading()
