"""The names of metrics before any run: what figures and tables name is checked against them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ..api.errors import PLUGIN_FAILURES, UsageError, unknown
from ..api.evaluation import EvaluationContext
from ..api.prompts import Batch, real_dtype
from ..api.random import torch_generator
from ..api.spec import canonical_json
from ..precision import DTYPES
from ..runs.inspection import expected_shape
from ..runs.plan import Plan
from .figure import CURVE
from .files import SweepFile

#: Prompts that a task is asked with.
PROMPTS = 2
#: Evaluations that are looked at: those of further tasks are not known before they run.
MOST_TASKS = 8


def require_metrics(file: SweepFile, plans: Iterable[Plan]) -> None:
    """Raise UsageError for a metric of the figure or table that no run of these plans can have.

    Where only a run tells what it measures, as with a metric of a plugin, nothing is refused.
    """
    figure, table = file.figure, file.table
    if table is None and (figure is None or (figure.x != CURVE and not any(figure.metrics))):
        return
    plans = list(plans)
    by_task = {f"{p.spec.task} {canonical_json(p.spec.task_args)}": p for p in plans}
    if not by_task or len(by_task) > MOST_TASKS or any(map(_measures_more, plans)):
        return
    tasks = [plan.task for plan in by_task.values()]
    names = [_expected_metrics(plan) for plan in by_task.values()]
    known = {name for some in names for name in some or ()}
    if None in names:
        return
    for pattern in table.unmatched(known) if table is not None else ():
        raise UsageError(f"{file.source}: table: {unknown('metric', pattern, known)}")
    for metric in figure.metrics if figure is not None else ():
        if metric is not None and metric not in known:
            raise UsageError(f"{file.source}: figure: {unknown('metric', metric, known)}")
    if figure is not None and figure.x == CURVE:
        curves = {name for task in tasks for name in task.axes}
        for metric in figure.metrics:
            if (metric or tasks[0].primary.metric) not in curves:
                name = metric or tasks[0].primary.metric
                raise UsageError(f"{file.source}: figure: {unknown('curve', name, curves)}")


def _expected_metrics(plan: Plan) -> set[str] | None:
    """The names that the task measures of a model that predicts zeros; None where it can't."""
    task = plan.task
    context = EvaluationContext(torch.device("cpu"), torch_generator("cpu", "names"))
    try:
        batches = task.evaluation_batches(PROMPTS, plan.spec.eval_seed, DTYPES[plan.spec.dtype])
        with torch.no_grad():
            return set(task.combine([task.evaluate(_zeros(b, task), b, context) for b in batches]))
    except PLUGIN_FAILURES:  # of a task that asks a model for more than a prediction
        return None


def _measures_more(plan: Plan) -> bool:
    """Whether metrics or a grader add names that the task does not know."""
    return bool(plan.metrics) or plan.grader is not None


def _zeros(batch: Batch, task: Any) -> Any:
    def predict(prompt: Any) -> Tensor:
        shape = (len(prompt[0]), *expected_shape(task, batch)[1:])
        return torch.zeros(shape, dtype=real_dtype(prompt))

    return predict
