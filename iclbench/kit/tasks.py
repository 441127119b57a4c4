"""The conformance check of tasks; it raises ConformanceError."""

from __future__ import annotations

from typing import Any

import torch

from ..api.evaluation import EvaluationContext
from ..api.prompts import Batch, map_tensors
from ..api.random import torch_generator
from ..api.scoring import POWERS
from ..api.task import Task, training_batch
from ..runs.checks import ConformanceError, expect
from ..runs.inspection import expected_shape
from ..runs.limits import LOST, Limits
from .floors import check_floor
from .methods import check_methods
from .shifts import check_shifts


def check_task(task: Task[Any], n: int = 8) -> None:
    """A task's training and evaluation prompts have one form, and its metrics fit its axes.

    Its methods change nothing that they are given, and its floor is no worse than chance.
    """
    check_methods(task, n)
    for dtype in (torch.float32, torch.float64):
        _check_training(task, n, dtype)
        _check_replicas(task, n, dtype)
        _check_evaluation(task, n, dtype)
    described = task.floor_kind == "none" or bool(task.floor_summary)
    expect(described, "floor_summary must say what the floor is")
    signature = task.signature
    inside = all(0 <= position < signature.length for position in signature.readout)
    expect(inside, "a read-out position is outside the sequence")
    if signature.causal:
        prompt = training_batch(
            task, n, torch_generator("cpu", "conformance"), torch.float64
        ).prompt
        masks = task.mask_after(prompt, 0) is not None
        expect(masks, "a causal task must define mask_after(), to test models for reading ahead")
    more, fewer = task.evaluation_draws(2 * n, 0), task.evaluation_draws(n, 0)
    prefix = all((more[name][:n] == values).all() for name, values in fewer.items())
    expect(prefix, "the first prompts of a larger evaluation set are not the smaller set's")
    check_floor(task)
    check_shifts(task)


def _check_training(task: Task[Any], n: int, dtype: torch.dtype) -> None:
    """Training prompts and targets have the signature's shapes and the run's dtype."""
    signature = task.signature
    batch, same = (
        training_batch(task, n, torch_generator("cpu", "conformance"), dtype) for _ in range(2)
    )
    expect(isinstance(batch.prompt, signature.prompt), "the prompt is not the signature's")
    expected = signature.target_shape(batch.target)
    expect(tuple(batch.target.shape) == expected, f"targets are not {expected}")
    pairs = zip((*batch.prompt, batch.target), (*same.prompt, same.target), strict=True)
    again = all(torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in pairs)
    expect(again, "training prompts depend on more than the generator: draw by `random` alone")
    dtypes = {t.dtype for t in (*batch.prompt, batch.target) if t.is_floating_point()}
    expect(dtypes <= {dtype}, f"training prompts are {dtypes}, not {dtype}")
    for name, stated_shape in signature.shapes.items():
        shape = tuple(getattr(batch.prompt, name).shape[1:])
        expect(shape == stated_shape, f"{name} is {shape}, not {stated_shape} as in the signature")
    real, ids = batch.prompt.sequence()
    stated = (n, signature.length, signature.input_width)
    fits = real.shape == stated
    if signature.varies:
        fits = real.ndim == 3 and all(a <= b for a, b in zip(real.shape, stated, strict=True))
    expect(fits, f"the sequence is {tuple(real.shape)}, not as the signature says")
    expect(ids.shape == real.shape[:2], "ids have another length than the real features")
    loss = task.loss(torch.zeros(expected_shape(task, batch), dtype=dtype), batch.target)
    expect(loss.shape == (n,), "loss() must be (B,)")


def _check_replicas(task: Task[Any], size: int, dtype: torch.dtype) -> None:
    """Each replica's batches depend on its generator alone, whether drawn alone or together."""

    def generators() -> list[torch.Generator]:
        return [torch_generator("cpu", "conformance of replicas", r) for r in range(3)]

    try:
        together = task.training_batches(2, size, generators(), dtype)
    except Exception as error:
        raise ConformanceError(f"drawing for 3 replicas at once raises {error!r}") from error
    for r, generator in enumerate(generators()):
        alone = task.training_batches(2, size, [generator], dtype)
        for one, several in zip(
            (*alone.prompt, alone.target), (*together.prompt, together.target), strict=True
        ):
            same = one.shape[1:] == several.shape[1:]
            same = same and torch.allclose(
                one[0].double(), several[r].double(), rtol=1e-3, atol=1e-4, equal_nan=True
            )
            expect(
                same,
                "a replica's training prompts depend on the replicas beside it: draw by `random` "
                "alone, and let arrange() compute each row from its own row of the draws",
            )


def _check_evaluation(task: Task[Any], n: int, dtype: torch.dtype) -> None:
    """Evaluation prompts are rounded, their targets are not, and every metric has its shape."""
    context = EvaluationContext(torch.device("cpu"), torch_generator("cpu", "conformance"))
    parts = []
    for batch in task.evaluation_batches(n, 0, dtype):
        exact = not batch.target.is_floating_point() or batch.target.dtype == torch.float64
        expect(exact, "evaluation targets must stay float64")
        expected = task.signature.target_shape(batch.target)
        expect(tuple(batch.target.shape) == expected, f"evaluation targets are not {expected}")
        dtypes = {t.dtype for t in batch.prompt if t.is_floating_point()}
        expect(dtypes <= {dtype}, f"evaluation prompts are {dtypes}, not {dtype}")
        _check_rows(task, batch)
        if task.floor_kind == "exact":
            _check_exact(task, batch, dtype)
        chance = all(bool(values.isfinite().all()) for values in task.chance(batch).values())
        expect(chance, "chance() must give finite values")
        metrics = task.metrics(torch.zeros(expected_shape(task, batch), dtype=torch.float64), batch)
        parts.append({**metrics, **task.floor(batch, context)})
    scores = task.combine(parts)
    expect(task.primary.metric in scores, f"metrics() lacks {task.primary.metric}")
    for name, values in scores.items():
        # An expensive metric may be measured on the first prompts only.
        count = n if name == task.primary.metric else min(n, len(values))
        shape = (count, *([len(task.axes[name].values)] if name in task.axes else []))
        expect(tuple(values.shape) == shape, f"metric {name} is not {shape}")


def _check_rows(task: Task[Any], batch: Batch) -> None:
    """The metrics of a prompt do not depend on the other prompts."""
    generator = torch_generator("cpu", "conformance of metrics")
    shape = expected_shape(task, batch)
    prediction = torch.randn(shape, generator=generator, dtype=torch.float64)
    together, count = task.metrics(prediction, batch), len(batch.target) // 2
    if not count:
        return
    truth = {name: values[:count] for name, values in batch.truth.items()}
    prompt = map_tensors(lambda t: t[:count], batch.prompt)
    alone = task.metrics(prediction[:count], Batch(prompt, batch.target[:count], truth))
    for name, values in together.items():
        same = name in alone and len(alone[name]) == min(count, len(values))
        same = same and torch.allclose(alone[name], values[:count], rtol=1e-4, equal_nan=True)
        expect(same, f"metrics() mixes prompts: {name} of a prompt changes with the others")


def _check_exact(task: Task[Any], batch: Batch, dtype: torch.dtype) -> None:
    """The exact answer is float64, in the target's shape, the same every time, and near the target.

    Rounding the prompt moves the answer by its condition number times the rounding. So in float64
    the distance from the target must be below √ε, relative to the targets' root mean square, for
    half of the prompts. It is the distance that the primary metric sees.
    """
    answer, again = (task.exact_answer(batch) for _ in range(2))
    fits = answer.dtype == torch.float64 and answer.shape == batch.target.shape
    expect(fits, f"exact_answer() is {answer.dtype} of shape {tuple(answer.shape)}, and must be "
           f"torch.float64 of shape {tuple(batch.target.shape)}")  # fmt: skip
    expect(torch.equal(answer, again), "exact_answer() differs between two calls")
    metric = task.primary.metric
    expect(metric in task.errors, f"an exact floor needs {metric} to be among `errors`")
    if dtype == torch.float64:
        ratio = task.metrics(answer, batch)[metric] / Limits.of(task, batch).lost[metric]
        distance = LOST * ratio ** (1.0 / POWERS[task.errors[metric]])
        near = float(distance.median()) <= torch.finfo(dtype).eps ** 0.5
        expect(near, "exact_answer() is further from the target than rounding the prompt explains")
