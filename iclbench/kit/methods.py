"""What the methods of a task return, and that they change nothing that they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..api.draws import EvaluationRandom
from ..api.evaluation import EvaluationContext
from ..api.prompts import Batch
from ..api.random import torch_generator
from ..api.task import Task, training_batch
from ..runs.checks import expect
from ..runs.inspection import expected_shape

#: Predictions of about this size are an untrained model's.
UNTRAINED = 0.1


def check_methods(task: Task[Any], n: int = 8) -> None:
    """Raise ConformanceError for a method whose result has another form, or that changes its input.

    A task with its own `evaluation_batches` need not define `draw` and `arrange`.
    """
    if type(task).evaluation_batches is Task.evaluation_batches:
        for case in task.cases:
            _check_draws(task, n, case)
    batch = training_batch(task, n, torch_generator("cpu", "conformance"), torch.float64)
    for what, prediction in _predictions(task, batch).items():
        loss = _unchanged("loss()", [batch.target], partial(task.loss, prediction, batch.target))
        finite = not isinstance(loss, Tensor) or bool(loss.isfinite().all())
        expect(finite, f"loss() is not finite for {what}")
    for batch in task.evaluation_batches(n, 0, torch.float64):
        _check_batch(task, batch)


def _check_draws(task: Task[Any], n: int, case: int | None) -> None:
    """The draws follow from `random`, have a row per prompt, and are not changed by `arrange`."""
    first, again = (
        task.draw(EvaluationRandom(task.stream or task.name, n, 0, case)) for _ in range(2)
    )
    expect(isinstance(first, Mapping), f"draw() returns {_kind(first)}, not a dictionary")
    for name, values in first.items():
        expect(isinstance(values, Tensor), f"draw() gives {name} as {_kind(values)}, not a tensor")
        rows = values.ndim > 0 and len(values) == n
        expect(
            rows,
            f"draw() gives {name} of shape {tuple(values.shape)} for {n} prompts; its first "
            "dimension must be theirs, as that of the numbers of `random` is",
        )
        same = torch.allclose(values, again[name], rtol=0, atol=0, equal_nan=True)
        expect(same, f"draw() gives another {name} the second time; take numbers from `random`")
    _unchanged("arrange()", list(first.values()), partial(task.arrange, dict(first)), list(first))


def _check_batch(task: Task[Any], batch: Batch) -> None:
    """Metrics are float64 and one per prompt, fractions are fractions, the batch stays as it is."""
    truth = batch.truth
    tensors = [*batch.prompt, batch.target, *truth.values()]
    names = [*batch.prompt._fields, "target", *truth]
    context = EvaluationContext(torch.device("cpu"), torch_generator("cpu", "conformance"))
    for what, prediction in _predictions(task, batch).items():
        metrics = _unchanged("metrics()", tensors, partial(task.metrics, prediction, batch), names)
        expect(isinstance(metrics, Mapping), f"metrics() returns {_kind(metrics)}, not {{name: …}}")
        for name, values in metrics.items():
            _check_values(task, name, values, what)
    methods: dict[str, Callable[[], Any]] = {
        "answer()": partial(task.answer, batch),
        "reference()": partial(task.reference, batch),
        "floor()": partial(task.floor, batch, context),
        "chance()": partial(task.chance, batch),
    }
    returned = {name: _unchanged(name, tensors, do, names) for name, do in methods.items()}
    reference, expected = returned["reference()"], expected_shape(task, batch)
    if isinstance(reference, Tensor):  # another shape would be broadcast with the targets'
        shape = tuple(reference.shape)
        expect(shape == expected, f"reference() returns {shape}, not a prediction's {expected}")


def _check_values(task: Task[Any], name: str, values: Any, what: str) -> None:
    expect(isinstance(values, Tensor), f"metrics() gives {name} as {_kind(values)}, not a tensor")
    per_prompt = values.ndim == (2 if name in task.axes else 1)
    form = (
        "(B, n), as `axes` says" if name in task.axes else "(B,), or (B, n) with an axis in `axes`"
    )
    expect(per_prompt, f"metrics() must give {name} as {form}; its shape is {tuple(values.shape)}")
    expect(values.dtype == torch.float64, f"metrics() gives {name} in {values.dtype}, not float64")
    if name in task.fractions:
        numbers = values[~values.isnan()]
        within = bool(((numbers >= 0) & (numbers <= 1)).all())
        expect(within, f"metric {name} is among `fractions` and not between 0 and 1 for {what}")


def _predictions(task: Task[Any], batch: Batch) -> dict[str, Tensor]:
    """Predictions (B, P, W) that any task scores, float64, by what they are."""
    shape = expected_shape(task, batch)
    noise = torch.randn(shape, generator=torch_generator("cpu", "conformance"), dtype=torch.float64)
    return {
        "a prediction of zeros": torch.zeros(shape, dtype=torch.float64),
        "an untrained model's prediction": UNTRAINED * noise,
        "a prediction of large numbers": noise / UNTRAINED,
    }


def _unchanged(
    method: str, tensors: list[Tensor], call: Callable[[], Any], names: list[str] | None = None
) -> Any:
    """The result of a call, which must leave the tensors as they are."""
    before = [tensor.clone() for tensor in tensors]
    result = call()
    for name, tensor, copy in zip(names or ["target"], tensors, before, strict=True):
        same = tensor.shape == copy.shape and torch.allclose(
            tensor, copy, rtol=0, atol=0, equal_nan=True
        )
        expect(same, f"{method} changes {name} in place; it must change a copy")
    return result


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
