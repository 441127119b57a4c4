"""Logits of a large vocabulary kept as factors, and a cross-entropy that never holds them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

#: Logits that are held at once, in elements: 64 MiB of float32.
AT_ONCE = 2**24


class FactoredLogits(NamedTuple):
    """The factors of the logits states · weightᵀ + bias, which are not multiplied out.

    states (B, P, d), weight (V, d), bias (V,) or None. A model that answers `token` returns them
    in training (`TrainingContext.factored_logits`), since P · V logits per prompt are too many to
    hold.
    """

    states: Tensor
    weight: Tensor
    bias: Tensor | None


def token_loss(prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
    """The cross-entropy (B, P), in nats, of targets (B, P) under logits (B, P, V)."""
    if isinstance(prediction, FactoredLogits):
        states = prediction.states.flatten(0, 1)
        losses: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            states, prediction.weight, prediction.bias, target.flatten()
        )
        return losses.view(target.shape)
    return -prediction.log_softmax(dim=2).gather(2, target.unsqueeze(2))[..., 0]


class _CrossEntropy(torch.autograd.Function):
    """Computes a chunk of rows at a time, in the forward pass and again in the backward pass.

    Under autocast, matrices are multiplied in its dtype. The softmax is at least float32.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(states: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> Tensor:
        """Map states (N, d), weight (V, d), bias (V,) and target (N,) to losses (N,)."""
        dtype = _product_dtype(states)
        losses = []
        for chunk, wanted in _chunks(states, target, weight):
            logits = _logits(chunk, weight, bias, dtype)
            picked = logits.gather(1, wanted.unsqueeze(1))[:, 0]
            losses.append(logits.logsumexp(dim=1) - picked)
        return torch.cat(losses)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the factors."""
        states, weight, bias, target = inputs
        ctx.save_for_backward(states, weight, bias, target)
        ctx.dtype = _product_dtype(states)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of states, weight and bias."""
        states, weight, bias, target = ctx.saved_tensors
        (grad,) = grads
        size = _chunk_size(weight)
        state_grads = []
        weight_grad = torch.zeros_like(weight)
        bias_grad = None if bias is None else torch.zeros_like(bias)
        columns = torch.arange(len(weight), device=weight.device)
        for index, (chunk, wanted) in enumerate(_chunks(states, target, weight)):
            # The gradient of the logits: probabilities less the one-hot target.
            delta = _logits(chunk, weight, bias, ctx.dtype).softmax(dim=1)
            delta = delta - (wanted.unsqueeze(1) == columns).to(delta)
            delta = delta * grad[index * size : (index + 1) * size].unsqueeze(1)
            # Sums are not in place, which vmap's rule could not batch.
            if bias_grad is not None:
                bias_grad = bias_grad + delta.sum(dim=0).to(bias_grad)
            delta = delta.to(ctx.dtype)
            state_grads.append((delta @ weight.to(ctx.dtype)).to(states))
            weight_grad = weight_grad + (delta.mT @ chunk.to(ctx.dtype)).to(weight_grad)
        return torch.cat(state_grads), weight_grad, bias_grad, None


def _product_dtype(states: Tensor) -> torch.dtype:
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def _chunk_size(weight: Tensor) -> int:
    return max(1, AT_ONCE // len(weight))


def _chunks(states: Tensor, target: Tensor, weight: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    size = _chunk_size(weight)
    return zip(torch.split(states, size), torch.split(target, size), strict=True)


def _logits(chunk: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    logits = linear(chunk.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
