"""Whether a model reads the answers: what it says must not change with what comes later."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ..api.capabilities import ShowsStates, offers
from ..api.errors import UsageError
from ..api.random import torch_generator
from ..api.task import Task
from ..devices import one_thread

#: Of more positions than these so many are asked about, evenly spaced from the first to the last.
MANY, ASKED = 48, 16
#: Largest change of earlier states, relative to the largest state, that is rounding (float64).
LEAK = 1e-9


def reads_ahead(module: nn.Module, task: Task[Any]) -> int | None:
    """The first position or answer that changes when what comes later does, or None.

    The states of a model that shows them by `hidden(real, ids)`, as sequence models do, are
    compared with every later token replaced, another module's answers with what the task conceals.
    A copy in float64 is asked at random parameters of several sizes, since an initial model may do
    next to nothing; raises UsageError if it can't be asked.
    """
    module = copy.deepcopy(module).double().eval()
    batch = task.sample(4, torch_generator("cpu", "causality"), torch.device("cpu"), torch.float64)
    changes = _state_changes if offers(module, ShowsStates) else _answer_changes
    asked = False
    with torch.no_grad(), one_thread():
        for scale in (0.5, 0.1, 0.02) if any(True for _ in module.parameters()) else (0.0,):
            generator = torch_generator("cpu", "causality, parameters")
            for parameter in module.parameters():
                parameter.copy_(scale * torch.randn(parameter.shape, generator=generator).double())
            for position, (change, size) in enumerate(changes(module, task, batch.prompt)):
                if not math.isfinite(size) or not math.isfinite(change):
                    break
                asked = True
                if change > LEAK * size:
                    return position
    if not asked:
        raise UsageError(f"it can't be told whether the model reads the answers of {task.name}")
    return None


def _state_changes(model: Any, task: Task[Any], prompt: Any) -> Iterator[tuple[float, float]]:
    """For each position: how far states up to it move with later tokens, and their size."""
    real, ids = prompt.sequence()
    before = model.hidden(real, ids)
    for t in _spread(ids.shape[1] - 1):
        later, other = real.clone(), ids.clone()
        later[:, t + 1 :] = -3.0 * later[:, t + 1 :] + 1.0
        other[:, t + 1 :] = other[:, t + 1 :].flip(0)
        change = (model.hidden(later, other) - before)[:, : t + 1]
        yield float(change.abs().max()), float(before.abs().max())


def _spread(count: int) -> list[int]:
    """All of `count` positions, or ASKED of them."""
    if count <= MANY:
        return list(range(count))
    return sorted({round(k * (count - 1) / (ASKED - 1)) for k in range(ASKED)})


def _answer_changes(module: Any, task: Task[Any], prompt: Any) -> Iterator[tuple[float, float]]:
    """For each read-out: how far answers up to it move with what comes later, and their size."""
    before = module(prompt)
    for k in _spread(before.shape[1]):
        concealed = task.conceal(prompt, k)
        if concealed is None:
            return
        change = (module(concealed) - before)[:, : k + 1]
        yield float(change.abs().max()), float(before.abs().max())


def require_causal(module: nn.Module, task: Task[Any]) -> None:
    """Refuse a model that would read the answers, or can't be asked; raises UsageError."""
    if not task.signature.causal:
        return
    position = reads_ahead(module, task)
    if position is not None:
        raise UsageError(
            f"the model can't do {task.name}: what it says at {position} changes with what comes "
            "later, so it would read the answers"
        )
