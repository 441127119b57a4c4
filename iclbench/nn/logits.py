"""Logits of a large vocabulary kept as their factors, and a cross-entropy that never holds them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

#: Logits that are held at once, in elements: 64 MiB of float32.
AT_ONCE = 2**24


class FactoredLogits(NamedTuple):
    """Logits states · weightᵀ + bias that nobody has multiplied out.

    states (B, P, d), weight (V, d), bias (V,) or None. A model that answers `token` and has an
    attribute `factored` returns them in training, where P · V numbers a prompt are too many to
    hold: the engine sets it on its own copy.
    """

    states: Tensor
    weight: Tensor
    bias: Tensor | None


def token_loss(prediction: Tensor | FactoredLogits, target: Tensor) -> Tensor:
    """The cross-entropy of each target (B, P) under logits (B, P, V), in nats, (B, P)."""
    if isinstance(prediction, FactoredLogits):
        rows = prediction.states.flatten(0, 1)
        found: Any = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            rows, prediction.weight, prediction.bias, target.flatten()
        )
        return found.view(target.shape)  # type: ignore[no-any-return]
    return -prediction.log_softmax(dim=2).gather(2, target.unsqueeze(2))[..., 0]


class _CrossEntropy(torch.autograd.Function):
    """A chunk of rows at a time, in the forward pass and again in the backward pass.

    Under autocast matrices are multiplied in its dtype; the softmax is at least float32.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(states: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> Tensor:
        """states (N, d), weight (V, d), bias (V,), target (N,) → (N,)."""
        dtype = _dtype(states)
        losses = []
        for part, wanted in _chunks(states, target, weight):
            logits = _logits(part, weight, bias, dtype)
            picked = logits.gather(1, wanted.unsqueeze(1))[:, 0]
            losses.append(logits.logsumexp(dim=1) - picked)
        return torch.cat(losses)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the factors."""
        states, weight, bias, target = inputs
        ctx.save_for_backward(states, weight, bias, target)
        ctx.dtype = _dtype(states)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of states, weight and bias."""
        states, weight, bias, target = ctx.saved_tensors
        (grad,) = grads
        size = _rows(weight)
        d_states = []
        d_weight, d_bias = (
            torch.zeros_like(weight),
            None if bias is None else torch.zeros_like(bias),
        )
        columns = torch.arange(len(weight), device=weight.device)
        for start, (part, wanted) in enumerate(_chunks(states, target, weight)):
            share = _logits(part, weight, bias, ctx.dtype).softmax(dim=1)
            share = share - (wanted.unsqueeze(1) == columns).to(share)
            share = share * grad[start * size : (start + 1) * size].unsqueeze(1)
            if d_bias is not None:
                d_bias = d_bias + share.sum(dim=0).to(d_bias)
            share = share.to(ctx.dtype)
            d_states.append((share @ weight.to(ctx.dtype)).to(states))
            d_weight = d_weight + (share.mT @ part.to(ctx.dtype)).to(d_weight)
        return torch.cat(d_states), d_weight, d_bias, None


def _dtype(states: Tensor) -> torch.dtype:
    kind = states.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype


def _rows(weight: Tensor) -> int:
    return max(1, AT_ONCE // len(weight))


def _chunks(states: Tensor, target: Tensor, weight: Tensor) -> Any:
    size = _rows(weight)
    return zip(torch.split(states, size), torch.split(target, size), strict=True)


def _logits(part: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    logits = linear(part.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
