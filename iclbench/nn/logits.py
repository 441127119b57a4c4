"""Logits of a large vocabulary as factors, and a cross-entropy that never holds all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ..api.capabilities import TrainingContext

#: Largest number of logits held at once: 64 MiB of float32.
MAX_LOGITS = 2**24


class FactoredLogits(NamedTuple):
    """Logits states · weightᵀ + bias, kept as factors.

    states (B, P, d), weight (V, d), bias (V,) or None. Models for target `token` return them in
    training if `TrainingContext.factored_logits`, because P · V logits per prompt take too much
    memory.
    """

    states: Tensor
    weight: Tensor
    bias: Tensor | None


def factors_logits(model: Any, context: TrainingContext) -> bool:
    """Whether the training form of a model with a linear `readout` returns `FactoredLogits`."""
    linear_readout = isinstance(model.readout, nn.Linear)
    return context.factored_logits and model.answers_tokens and linear_readout


def logits_at(prediction: Tensor | FactoredLogits, index: Tensor) -> Tensor | FactoredLogits:
    """Return the logits (B, n, V), or their factors, at n of the P read-outs of each prompt.

    `index` (B, n) counts the read-outs. Factors of the others are never multiplied.
    """
    if isinstance(prediction, FactoredLogits):
        return prediction._replace(states=_rows_at(prediction.states, index))
    return _rows_at(prediction, index)


def _rows_at(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(1, index.unsqueeze(2).expand(-1, -1, values.shape[2]))


def token_loss(prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
    """Return the cross-entropy (B, P), in nats, of targets (B, P) under logits (B, P, V)."""
    if isinstance(prediction, FactoredLogits):
        states = prediction.states.flatten(0, 1)
        losses: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            states, prediction.weight, prediction.bias, target.flatten()
        )
        return losses.view(target.shape)
    return -prediction.log_softmax(dim=2).gather(2, target.unsqueeze(2))[..., 0]


class _CrossEntropy(torch.autograd.Function):
    """A cross-entropy that recomputes the logits in the backward pass, in chunks of rows.

    Under autocast, matrices are multiplied in its dtype. The softmax is in float32 or more.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(states: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> Tensor:
        """Map states (N, d), weight (V, d), bias (V,) and target (N,) to losses (N,)."""
        dtype = _product_dtype(states)
        losses = []
        for chunk, ids in _chunks(states, target, weight):
            logits = _logits(chunk, weight, bias, dtype)
            target_logits = logits.gather(1, ids.unsqueeze(1))[:, 0]
            # In the float32 that `_logits` returns: bfloat16 would lose the difference.
            losses.append(logits.logsumexp(dim=1) - target_logits)
        return torch.cat(losses)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save the factors."""
        states, weight, bias, target = inputs
        ctx.save_for_backward(states, weight, bias, target)
        # Kept for the backward pass, which may run outside autocast.
        ctx.dtype = _product_dtype(states)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of states, weight and bias."""
        states, weight, bias, target = ctx.saved_tensors
        (grad,) = grads
        # As in the forward pass: both must divide the rows in the same way.
        size = _chunk_size(weight)
        state_grads = []
        weight_grad = torch.zeros_like(weight)
        bias_grad = None if bias is None else torch.zeros_like(bias)
        columns = torch.arange(len(weight), device=weight.device)
        for index, (chunk, ids) in enumerate(_chunks(states, target, weight)):
            # The gradient of the logits: probabilities minus the one-hot target.
            delta = _logits(chunk, weight, bias, ctx.dtype).softmax(dim=1)
            delta = delta - (ids.unsqueeze(1) == columns).to(delta)
            delta = delta * grad[index * size : (index + 1) * size].unsqueeze(1)
            # Not in place: under vmap, an unbatched sum can't take a batched addend.
            if bias_grad is not None:
                bias_grad = bias_grad + delta.sum(dim=0).to(bias_grad)
            # Only products are in autocast's dtype; the softmax and the bias's gradient are not.
            delta = delta.to(ctx.dtype)
            state_grads.append((delta @ weight.to(ctx.dtype)).to(states))
            weight_grad = weight_grad + (delta.mT @ chunk.to(ctx.dtype)).to(weight_grad)
        return torch.cat(state_grads), weight_grad, bias_grad, None


def _product_dtype(states: Tensor) -> torch.dtype:
    """Return autocast's dtype if it is on, else that of the states."""
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def _chunk_size(weight: Tensor) -> int:
    return max(1, MAX_LOGITS // len(weight))


def _chunks(states: Tensor, target: Tensor, weight: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Iterate over chunks of states (n, d) and target ids (n,)."""
    size = _chunk_size(weight)
    return zip(torch.split(states, size), torch.split(target, size), strict=True)


def _logits(chunk: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Return logits (n, V) in at least float32, multiplied in `dtype`."""
    logits = linear(chunk.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
