"""The checks that an architecture and a task must pass; each raises ConformanceError."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from .architectures import Architecture, SequenceModel
from .config import Config
from .errors import IclbenchError, UsageError
from .prompts import map_tensors
from .randomness import torch_generator
from .tasks import Task

#: Largest change of earlier states, relative to the largest state, that is rounding (float64).
LEAK = 1e-9


class ConformanceError(IclbenchError):
    """A plugin does not do what its interface promises."""


def reads_ahead(model: SequenceModel, real: Tensor, ids: Tensor) -> int | None:
    """The first position whose state changes when later tokens do, or None.

    Every position of real (B, S, d) and ids (B, S) after t is replaced, for each t. A copy of the
    model in float64 with random parameters is asked, since an initial mixer may do next to nothing.
    """
    model = copy.deepcopy(model).double().eval()
    generator = torch_generator("cpu", "causality, parameters")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator).double())
        real = real.double()
        before = model.hidden(real, ids)
        for t in range(ids.shape[1] - 1):
            later, other = real.clone(), ids.clone()
            later[:, t + 1 :] = -3.0 * later[:, t + 1 :] + 1.0
            other[:, t + 1 :] = other[:, t + 1 :].flip(0)
            change = (model.hidden(later, other) - before)[:, : t + 1].abs().max()
            if not change <= LEAK * before.abs().max():
                return t
    return None


def require_causal(module: nn.Module, task: Task[Any]) -> None:
    """Refuse a sequence model that would read the answers; raises UsageError."""
    if not task.signature.causal or not isinstance(module, SequenceModel):
        return
    batch = task.sample(4, torch_generator("cpu", "causality"), torch.device("cpu"), torch.float64)
    position = reads_ahead(module, *batch.prompt.sequence())
    if position is not None:
        raise UsageError(
            f"the model can't do {task.name}: position {position} changes with later tokens, "
            "so it would read the answers"
        )


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
    if isinstance(module, SequenceModel) and (signature.causal or getattr(config, "causal", False)):
        position = reads_ahead(module, *batch.prompt.sequence())
        _expect(position is None, f"is not causal: position {position} sees later tokens")
    if any(True for _ in module.parameters()):
        loss = task.loss(module(batch.prompt), batch.target).mean()
        named = dict(module.named_parameters())
        grads = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        unused = [name for name, grad in zip(named, grads, strict=True) if grad is None]
        _expect(not unused, f"parameters without a gradient: {', '.join(unused)}")


def check_task(task: Task[Any], n: int = 8) -> None:
    """A task's training and evaluation prompts have one form, and its reference is scored."""
    signature, cpu = task.signature, torch.device("cpu")
    shape = (n, len(signature.readout), signature.output_width)
    for dtype in (torch.float32, torch.float64):
        batch = task.sample(n, torch_generator("cpu", "conformance"), cpu, dtype)
        same = task.sample(n, torch_generator("cpu", "conformance"), cpu, dtype)
        _expect(isinstance(batch.prompt, signature.prompt), "the prompt is not the signature's")
        _expect(tuple(batch.target.shape) == shape, f"targets are not {shape}")
        _expect(torch.equal(batch.target, same.target), "sample() draws from elsewhere too")
        real, ids = batch.prompt.sequence()
        _expect(
            real.shape == (n, signature.length, signature.input_width),
            f"the sequence is {tuple(real.shape)}, not as the signature says",
        )
        _expect(ids.shape == (n, signature.length), "ids have another length than the signature")
        _expect(task.loss(batch.target, batch.target).shape == (n,), "loss() must be (B,)")
        _check_evaluation(task, n, dtype)
    more, fewer = task.evaluation_draws(2 * n, 0), task.evaluation_draws(n, 0)
    prefix = all((more[name][:n] == values).all() for name, values in fewer.items())
    _expect(prefix, "the first prompts of a larger evaluation set are not the smaller set's")


def _check_evaluation(task: Task[Any], n: int, dtype: torch.dtype) -> None:
    for batch in task.evaluation_set(n, 0, dtype):
        _expect(batch.target.dtype == torch.float64, "evaluation targets must stay float64")
        types = {t.dtype for t in batch.prompt if t.is_floating_point()}
        _expect(types <= {dtype}, f"evaluation prompts are {types}, not {dtype}")
        scores = task.metrics(task.reference(batch).to(torch.float64), batch)
        _expect(task.primary.metric in scores, f"metrics() lacks {task.primary.metric}")
        for name, values in scores.items():
            axis = [len(task.axes[name].values)] if name in task.axes else []
            wanted = (len(batch.target), *axis)
            _expect(tuple(values.shape) == wanted, f"metric {name} is not {wanted}")


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ConformanceError(otherwise)
