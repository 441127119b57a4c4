"""The first prompts of an evaluation set, as numbers beside what each model answered.

A record keeps the answers to these where they are a few numbers, and every prompt's error. The
prompts and targets are drawn again from the task, which needs no model; the digest of all draws
must be the record's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...api.errors import PLUGIN_FAILURES, IclbenchError
from ...api.prompts import Batch
from ...api.record import Record
from ...api.results import FIRST_PROMPTS
from ...api.spec import canonical_json
from ...api.task import Task
from ...runs.load import load_task
from ...runs.sizes import require_room, require_small_arguments
from ...runs.strangers import require_shipped_data
from ..formats import NOT_FINITE
from ..grouping import grouped
from .figure import View
from .minus import with_minus

#: Prompts that a page shows, and the rows and columns of a field that it prints.
COUNT, MOST_ROWS, MOST_COLUMNS = FIRST_PROMPTS, 12, 8


@dataclass
class Prompts:
    """The first prompts of evaluation sets, each drawn once, or the reason why they can't be."""

    _drawn: dict[str, list[View] | str] = field(default_factory=dict)

    def of(self, record: Record) -> list[View] | str:
        """The views of the record's first prompts, or the reason why there are none."""
        main, spec = record.main, record.spec
        key = canonical_json(
            [spec.task, spec.task_version, main.task_args, main.digest, spec.dtype]
        )
        if key not in self._drawn:
            try:
                self._drawn[key] = _draw(record)
            except IclbenchError as error:
                self._drawn[key] = str(error)
            except PLUGIN_FAILURES as error:  # a plugin's own mistake must not stop the site
                self._drawn[key] = f"the task failed to draw them: {type(error).__name__}"
        return self._drawn[key]


def small_task(name: str, task_args: Mapping[str, Any], prompts: int) -> Task[Any]:
    """The task of a record, which a stranger may have written, to draw this many prompts of.

    Raises UsageError for arguments that would need too much memory and for an unknown task, and
    RecordError for arguments that name data which no package ships.
    """
    require_shipped_data(task_args)
    task = load_task(name, **task_args)
    require_small_arguments(task.config, f"task {name}")
    require_room(prompts, task.signature, f"task {name}")
    return task


def _draw(record: Record) -> list[View] | str:
    spec, main = record.spec, record.main
    task = small_task(spec.task, main.task_args, main.prompts)
    if task.version != spec.task_version:
        return f"version {task.version} of the task is installed; the record has another"
    if type(task).evaluation_batches is not Task.evaluation_batches:
        return "this task's prompts come from data, which pages do not load"
    if task.evaluation_digest(main.prompts, main.seed) != main.digest:
        return "the installed task draws other prompts than the record's"
    count = min(COUNT, main.prompts)
    batches = task.evaluation_batches(count, main.seed, getattr(torch, spec.dtype))
    return [_prompt(batches[0], i) for i in range(len(batches[0].target))]


def _prompt(batch: Batch, index: int) -> View:
    """A prompt's fields in tables, those with as many rows side by side, and its target."""
    prompt = batch.prompt
    # `tokens` repeats the other fields as a sequence.
    repeated = {"tokens"} if len(prompt._fields) > 1 else set()
    values = {name: getattr(prompt, name)[index] for name in prompt._fields if name not in repeated}
    groups = grouped(values.items(), lambda item: len(item[1]) if item[1].ndim else 0)
    tables = [_table(members) for rows, members in groups.items() if rows]
    scalars = [(name, _number(value.item())) for name, value in groups.get(0, [])]
    return {
        "number": index + 1,
        "tables": tables,
        "scalars": scalars,
        "target": _table([("target", batch.target[index])]),
        "numbers": [_number(value) for value in batch.target[index].flatten().tolist()],
        "classes": 0 if batch.target.is_floating_point() else batch.target[index].numel(),
    }


def _table(members: Sequence[tuple[str, Tensor]]) -> View:
    """Fields with the same number of rows as one table; what doesn't fit is said, not shown."""
    columns: list[tuple[str, list[str]]] = []
    matrices = {name: v.reshape(len(v), -1) if v.ndim else v.reshape(1, 1) for name, v in members}
    # Behind a field that is cut, a short one would be out of sight.
    for name, matrix in sorted(matrices.items(), key=lambda m: m[1].shape[1] > MOST_COLUMNS):
        width = matrix.shape[1]
        for j in range(min(width, MOST_COLUMNS)):
            title = name if width == 1 else f"{name}{_subscript(j + 1)}"
            columns.append((title, [_number(v) for v in matrix[:MOST_ROWS, j].tolist()]))
        if width > MOST_COLUMNS:
            columns.append((f"{width - MOST_COLUMNS} more", ["…"] * min(len(matrix), MOST_ROWS)))
    rows = len(members[0][1]) if members[0][1].ndim else 1
    return {
        "name": ", ".join(name for name, _ in members),
        "titles": [title for title, _ in columns],
        "rows": list(zip(*(cells for _, cells in columns), strict=True)),
        "more": max(rows - MOST_ROWS, 0),
    }


def _subscript(number: int) -> str:
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _number(value: Any) -> str:
    return with_minus(f"{value:.4g}" if isinstance(value, float) else str(value))


def answers_at(record: Record, index: int, classes: int) -> list[list[str]]:
    """The numbers that each seed answered to a prompt, or the likeliest class of each query.

    [] for a record without answers.
    """
    if record.main.answers is None:
        return []
    return [_answer(by_prompt[index], classes) for by_prompt in record.main.answers]


def _answer(numbers: Sequence[float | None], classes: int) -> list[str]:
    known = [math.nan if v is None else v for v in numbers]
    if classes and len(known) % classes == 0:
        by_position = np.reshape(known, (classes, -1))
        return [NOT_FINITE if np.isnan(one).any() else str(one.argmax()) for one in by_position]
    return [NOT_FINITE if math.isnan(v) else _number(v) for v in known]


def with_answers(target: Sequence[str], answers: Sequence[Sequence[str]], names: Sequence[str]) -> (
    View
):  # fmt: skip
    """A table of a target's numbers, a row each, with what each of the named seeds answered."""
    rows = list(zip_longest(target, *answers, fillvalue=""))
    titles = ["target", *(name or "answer" for name in names)]
    if len(rows) > 1:
        rows = [(str(number), *row) for number, row in enumerate(rows, start=1)]
        titles = ["number", *titles]
    return {"name": "target and answers", "titles": titles, "rows": rows, "more": 0}


def values_at(record: Record, values: dict[str, np.ndarray]) -> list[View]:
    """Each metric's value at the first prompts: a line per metric, a cell per prompt and seed.

    Metrics with a second axis are left out, as are sets of several cases, whose prompts differ.
    """
    lines = []
    for name, array in values.items():
        if array.ndim == 2 and array.shape[1] == record.main.prompts:
            shown = array[:, :COUNT].T
            lines.append({"metric": name, "prompts": [[_value(v) for v in row] for row in shown]})
    return lines


def _value(value: float) -> str:
    if not np.isfinite(value):
        return NOT_FINITE
    return with_minus(f"{value:.2e}" if 0 < abs(value) < 1e-2 else f"{value:#.3g}".rstrip("."))
