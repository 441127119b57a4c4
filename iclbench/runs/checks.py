"""The checks that an architecture and a task must pass; each raises ConformanceError."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from ..api.architecture import Architecture
from ..api.capabilities import TrainingContext
from ..api.config import Config
from ..api.errors import IclbenchError
from ..api.prompts import Batch, map_tensors, stack
from ..api.random import torch_generator
from ..api.task import Task
from ..nn.model import SequenceModel
from ..training.gradients.binding import NoFormError
from ..training.gradients.equivalence import Reference
from ..training.gradients.leading import Leading
from ..training.replicas import Replicas
from .causality import reads_ahead


class ConformanceError(IclbenchError):
    """A plugin does not do what its interface promises."""


def check_architecture(architecture: Architecture, task: Task[Any], config: Config) -> None:
    """An architecture builds a module that answers the task's signature, prompt by prompt."""
    reason = architecture.supports(task.signature, config)
    _expect(reason is None, f"supports() refuses: {reason}")
    signature = task.signature
    module = architecture.build(signature, config).eval()
    dtype = torch.get_default_dtype()
    batch = task.sample(6, torch_generator("cpu", "conformance"), torch.device("cpu"), dtype)
    with torch.no_grad():
        prediction = module(batch.prompt)
        again = module(batch.prompt)
        single = torch.cat(
            [module(map_tensors(lambda t, i=i: t[i : i + 1], batch.prompt)) for i in range(6)]
        )
    shape = (6, len(signature.readout), signature.output_width)
    _expect(prediction.shape == shape, f"predicts {tuple(prediction.shape)}, not {shape}")
    _expect(prediction.dtype == dtype, f"predicts {prediction.dtype} from {dtype}")
    _expect(torch.equal(prediction, again), "two evaluations of one prompt differ")
    close = torch.allclose(prediction, single, rtol=1e-3, atol=1e-4)
    _expect(close, "a prompt's prediction depends on the prompts beside it")
    claims = isinstance(module, SequenceModel) and getattr(config, "causal", False)
    if signature.causal or claims:
        position = reads_ahead(module, task)
        _expect(position is None, f"is not causal: position {position} sees what comes later")
    problem = _of_replicas(architecture, task, config)
    _expect(problem is None, f"its form for several replicas differs: {problem}")
    if any(True for _ in module.parameters()):
        loss = task.loss(module(batch.prompt), batch.target).mean()
        named = dict(module.named_parameters())
        grads = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        unused = [name for name, grad in zip(named, grads, strict=True) if grad is None]
        _expect(not unused, f"parameters without a gradient: {', '.join(unused)}")


def _of_replicas(architecture: Architecture, task: Task[Any], config: Config) -> str | None:
    """How the module's form for several replicas at once differs from each one's, or None."""
    cpu, dtype = torch.device("cpu"), torch.get_default_dtype()
    modules = [architecture.build(task.signature, config) for _ in range(3)]
    if not any(True for _ in modules[0].parameters()):
        return None
    drawn = [
        task.sample(4, torch_generator("cpu", "conformance of replicas", r), cpu, dtype)
        for r in range(len(modules))
    ]
    replicas, batch = Replicas(modules, cpu), stack(drawn)
    context = TrainingContext(cpu, dtype, batch_size=4)
    make = partial(Leading, loss=task.loss, context=context, group_size=3)
    try:
        return Reference(replicas, batch, task.loss).find_mismatch(make)
    except NoFormError:
        return None


def check_task(task: Task[Any], n: int = 8) -> None:
    """A task's training and evaluation prompts have one form, and its reference is scored."""
    signature, cpu = task.signature, torch.device("cpu")
    for dtype in (torch.float32, torch.float64):
        batch = task.sample(n, torch_generator("cpu", "conformance"), cpu, dtype)
        same = task.sample(n, torch_generator("cpu", "conformance"), cpu, dtype)
        _expect(isinstance(batch.prompt, signature.prompt), "the prompt is not the signature's")
        expected = signature.target_shape(batch.target)
        _expect(tuple(batch.target.shape) == expected, f"targets are not {expected}")
        again = torch.allclose(batch.target, same.target, rtol=0, atol=0, equal_nan=True)
        _expect(again, "sample() draws from elsewhere too")
        types = {t.dtype for t in (*batch.prompt, batch.target) if t.is_floating_point()}
        _expect(types <= {dtype}, f"sample() gives {types}, not {dtype}")
        for name, wanted in signature.shapes.items():
            found = tuple(getattr(batch.prompt, name).shape[1:])
            _expect(found == wanted, f"{name} is {found}, not {wanted} as the signature says")
        real, ids = batch.prompt.sequence()
        stated = (n, signature.length, signature.input_width)
        fits = real.shape == stated
        if signature.varies:
            fits = real.ndim == 3 and all(a <= b for a, b in zip(real.shape, stated, strict=True))
        _expect(fits, f"the sequence is {tuple(real.shape)}, not as the signature says")
        _expect(ids.shape == real.shape[:2], "ids have another length than the real features")
        width = batch.target.shape[2] if signature.varies else signature.output_width
        zeros = torch.zeros(n, len(signature.readout), width, dtype=dtype)
        _expect(task.loss(zeros, batch.target).shape == (n,), "loss() must be (B,)")
        _check_replicas(task, n, dtype)
        _check_evaluation(task, n, dtype)
        inside = all(0 <= position < signature.length for position in signature.readout)
        _expect(inside, "a read-out position is outside the sequence")
    more, fewer = task.evaluation_draws(2 * n, 0), task.evaluation_draws(n, 0)
    prefix = all((more[name][:n] == values).all() for name, values in fewer.items())
    _expect(prefix, "the first prompts of a larger evaluation set are not the smaller set's")


def _check_replicas(task: Task[Any], size: int, dtype: torch.dtype) -> None:
    """Every replica's batches are its generator's own, drawn in turn, by threads or together."""
    cpu = torch.device("cpu")

    def streams() -> list[torch.Generator]:
        return [torch_generator("cpu", "conformance of replicas", r) for r in range(3)]

    def drawn(generator: torch.Generator) -> Batch:
        return task.sample_batches(2, size, generator, cpu, dtype)

    alone = stack(list(map(drawn, streams())))
    with ThreadPoolExecutor(3) as pool:
        threaded = stack(list(pool.map(drawn, streams())))
    try:
        together = task.sample_replicas(2, size, streams(), cpu, dtype)
    except Exception as error:
        raise ConformanceError(f"sample_replicas() raises {error!r}") from error
    for fields in zip(*((*b.prompt, b.target) for b in (alone, threaded, together)), strict=True):
        first, second, third = (field.to(torch.float64) for field in fields)
        same = torch.allclose(first, second, rtol=0, atol=0, equal_nan=True)
        _expect(same, "sample_batches() differs beside other threads that draw")
        near = first.shape == third.shape
        near = near and torch.allclose(first, third, rtol=1e-3, atol=1e-4, equal_nan=True)
        _expect(near, "sample_replicas() differs from sample_batches() of each generator")


def _check_evaluation(task: Task[Any], n: int, dtype: torch.dtype) -> None:
    parts = []
    for batch in task.evaluation_set(n, 0, dtype):
        exact = not batch.target.is_floating_point() or batch.target.dtype == torch.float64
        _expect(exact, "evaluation targets must stay float64")
        expected = task.signature.target_shape(batch.target)
        _expect(tuple(batch.target.shape) == expected, f"evaluation targets are not {expected}")
        types = {t.dtype for t in batch.prompt if t.is_floating_point()}
        _expect(types <= {dtype}, f"evaluation prompts are {types}, not {dtype}")
        width = batch.target.shape[2] if task.signature.varies else task.signature.output_width
        shape = (len(batch.target), len(task.signature.readout), width)
        prediction = torch.zeros(shape, dtype=torch.float64)
        parts.append({**task.metrics(prediction, batch), **task.floor(batch)})
    scores = task.combine(parts)
    _expect(task.primary.metric in scores, f"metrics() lacks {task.primary.metric}")
    for name, values in scores.items():
        # What is costly may be measured on the first prompts alone.
        count = n if name == task.primary.metric else min(n, len(values))
        wanted = (count, *([len(task.axes[name].values)] if name in task.axes else []))
        _expect(tuple(values.shape) == wanted, f"metric {name} is not {wanted}")


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ConformanceError(otherwise)
