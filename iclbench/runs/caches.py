"""Whether a mixer with a cache continues as it mixes a whole sequence.

Generated text is that of the cached form, while training and every other answer use the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from ..api.architecture import Architecture
from ..api.capabilities import Decodes, ExtendsPositions, offers
from ..api.config import Config
from ..api.errors import first_line
from ..api.random import torch_generator
from ..api.task import Task, training_batch
from ..nn.generation import Recompute
from ..precision import default_dtype

#: The positions of the first parts; the last part has the others.
PARTS = (2, 1, 3)
#: The largest difference of both forms, relative to the largest output.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-3}


def differing_cache(architecture: Architecture, task: Task[Any], config: Config) -> str | None:
    """Which mixer continues from its cache otherwise than it mixes a whole sequence, or None.

    In float64, if the architecture claims it. A model that reads ahead has no use for a cache.
    """
    if not getattr(config, "causal", True):
        return None
    dtype = torch.float64 if architecture.float64 else torch.float32
    with default_dtype(dtype), torch.no_grad():
        module = architecture.build(task.signature, config).eval()
        batch = training_batch(task, 2, torch_generator("cpu", "caches"), dtype)
        for mixer, x in _inputs(module, batch.prompt):
            problem = _difference(mixer, x, TOLERANCES[dtype])
            if problem is not None:
                return f"extend() of {type(mixer).__name__} {problem}"
        signature = task.signature
        # What generates text reads ids alone and answers at every position.
        is_text = signature.target == "token" and not signature.input_width
        answers_all = len(signature.readout) == signature.length
        if is_text and answers_all and offers(module, Decodes):
            return _decoder_difference(module, batch.prompt, TOLERANCES[dtype])
    return None


def _decoder_difference(module: Any, prompt: Any, tolerance: float) -> str | None:
    """How the logits of a module's own decoder differ from those of its forward pass, or None."""
    decoder = module.decoder()
    _, ids = prompt.sequence()
    if decoder is None:
        return None
    whole, start = Recompute(module, ids.shape[1]), 0
    for end in (2, 3, 6):
        if end <= ids.shape[1]:
            part = decoder.advance(ids[:, start:end])
            expected = whole.advance(ids[:, start:end])
            # NaN is not near anything.
            if not (part - expected).abs().max() <= tolerance * expected.abs().max():
                return f"its decoder differs from its forward pass at position {end - 1}"
            start = end
    return None


def _inputs(module: nn.Module, prompt: Any) -> Iterator[tuple[Any, Tensor]]:
    """The mixers that extend, each with what it is given for a prompt, (B, S, width)."""
    given: dict[nn.Module, Tensor] = {}

    def keep(mixer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if len(inputs) == 1 and isinstance(inputs[0], Tensor) and inputs[0].ndim == 3:
            given[mixer] = inputs[0]

    with ExitStack() as hooks:
        for part in module.modules():
            # A part of a backbone may extend for it without offering it.
            if getattr(part, "extends", False) and offers(part, ExtendsPositions):
                hooks.callback(part.register_forward_pre_hook(keep).remove)
        module(prompt)
    yield from given.items()


def _difference(mixer: Any, x: Tensor, tolerance: float) -> str | None:
    """How the outputs for parts of `x` differ from those for all of it, or None."""
    whole, cache, start = mixer(x), None, 0
    bounds = [*torch.tensor(PARTS).cumsum(0).tolist(), x.shape[1]]
    for end in (bound for bound in bounds if bound <= x.shape[1]):
        if end == start:
            continue
        try:
            part, cache = mixer.extend(x[:, start:end], cache)
        except Exception as error:
            return f"fails at position {start}: {first_line(error)}"
        expected = whole[:, start:end]
        if part.shape != expected.shape:
            return f"gives {tuple(part.shape)} at position {start}, not {tuple(expected.shape)}"
        near = (part - expected).abs().amax(dim=(0, 2)) <= tolerance * whole.abs().max()
        if not bool(near.all()):
            at = start + int(near.int().argmin())
            return (
                f"differs from its forward pass at position {at}: the cache must hold all that "
                "later positions need"
            )
        start = end
    return None
