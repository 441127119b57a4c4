"""Whether a model reads the answers: no prediction may change with what comes after it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from ..api.capabilities import ShowsStates, offers
from ..api.errors import PLUGIN_FAILURES, UsageError
from ..api.random import torch_generator
from ..api.task import Task, training_batch
from ..precision import default_dtype
from ..training.threads import one_thread

#: A sequence longer than MANY is tested at ASKED positions, evenly spaced from first to last.
MANY, ASKED = 48, 16
#: Largest change of earlier states, relative to the largest state, that is rounding.
LEAK = {torch.float64: 1e-9, torch.float32: 1e-4}
#: Yields, for each tested position, the change of earlier values with later inputs, and their size.
Probe = Callable[[Any, Task[Any], Any], Iterator[tuple[float, float]]]
#: Standard deviations of the random parameters that a model is tested with.
SCALES = (0.5, 0.1, 0.02)


def reads_ahead(module: nn.Module, task: Task[Any]) -> int | None:
    """The first answer, or position, that changes when later inputs do; None if none does.

    The answers of a causal task are compared after the task masked the rest of its prompt: always
    those that are scored. The states of a module that shows them, such as a sequence model, are
    compared too, after every later token was replaced.

    A float64 copy is tested, or a float32 one of a model that can't compute in float64: with the
    parameters that it has, behind which buffers could hide a leak from others, and with random ones
    of several sizes, since a freshly initialized model may do next to nothing. Raises UsageError
    where the answers can't be tested.
    """
    try:
        return _first_leak(module, task, torch.float64)
    except UsageError:
        raise
    except PLUGIN_FAILURES:  # a model of one dtype
        return _first_leak(module, task, torch.float32)


def _first_leak(module: nn.Module, task: Task[Any], dtype: torch.dtype) -> int | None:
    """`reads_ahead`, of a copy in this dtype."""
    module = copy.deepcopy(module).to(dtype).eval()
    batch = training_batch(task, 4, torch_generator("cpu", "causality"), dtype)
    probes: list[Probe] = [_answer_changes] if task.signature.causal else []
    probes += [_state_changes] if offers(module, ShowsStates) else []
    tested = set()
    with torch.no_grad(), one_thread(), default_dtype(dtype):
        # From large to small: a leak shows best with large parameters, unless they overflow.
        for scale in (None, *SCALES) if any(True for _ in module.parameters()) else (None,):
            if scale is not None:
                draw_parameters(module, scale)
            for probe in probes:
                for position, (change, size) in enumerate(probe(module, task, batch.prompt)):
                    if not math.isfinite(size) or not math.isfinite(change):
                        break  # these parameters are too large; the smaller ones tell
                    tested.add(probe)
                    if change > LEAK[dtype] * size:
                        return position
    if not probes or probes[0] not in tested:
        raise UsageError(f"can't test whether the model reads the answers of {task.name}")
    return None


def draw_parameters(module: nn.Module, scale: float) -> None:
    """Replace the parameters of a module by normal numbers of that standard deviation."""
    generator = torch_generator("cpu", "causality, parameters")
    for parameter in module.parameters():
        # Also zero parameters, such as biases, behind which a leak could hide.
        parameter.copy_(scale * torch.randn(parameter.shape, generator=generator).double())


def require_causal(module: nn.Module, task: Task[Any]) -> None:
    """Raise UsageError for a model that reads the answers of a causal task, or can't be tested."""
    if not task.signature.causal:
        return
    position = reads_ahead(module, task)
    if position is not None:
        raise UsageError(
            f"the model can't do {task.name}: its output at position {position} changes with later "
            "inputs, so it would read the answers; a mixer must obey `causal`"
        )


def _state_changes(model: Any, task: Task[Any], prompt: Any) -> Iterator[tuple[float, float]]:
    """For each tested position: the change of states up to it with later tokens, and their size."""
    real, ids = prompt.sequence()
    before = model.hidden(real, ids)
    for t in _tested_positions(ids.shape[1] - 1):
        other_real, other_ids = real.clone(), ids.clone()
        # Changes every number but ¼, zeros included.
        other_real[:, t + 1 :] = -3.0 * other_real[:, t + 1 :] + 1.0
        # Another prompt's ids, which stay within the vocabulary.
        other_ids[:, t + 1 :] = other_ids[:, t + 1 :].flip(0)
        change = (model.hidden(other_real, other_ids) - before)[:, : t + 1]
        yield float(change.abs().max()), float(before.abs().max())


def _answer_changes(module: Any, task: Task[Any], prompt: Any) -> Iterator[tuple[float, float]]:
    """For each tested read-out: the change of answers up to it, and their size.

    Nothing where the task can't mask what comes later.
    """
    before = module(prompt)
    for k in _tested_positions(before.shape[1]):
        masked = task.mask_after(prompt, k)
        if masked is None:
            return
        change = (module(masked) - before)[:, : k + 1]
        yield float(change.abs().max()), float(before.abs().max())


def _tested_positions(count: int) -> list[int]:
    if count <= MANY:
        return list(range(count))
    return sorted({round(k * (count - 1) / (ASKED - 1)) for k in range(ASKED)})
