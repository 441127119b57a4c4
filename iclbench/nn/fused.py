"""What modules with a fused path share: whether one is watched, and rows of a tensor."""

from __future__ import annotations

from torch import Tensor, nn


def watched(module: nn.Module) -> bool:
    """Whether a hook would miss that a part of the module is not called."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or part._backward_hooks
        or part._backward_pre_hooks
        for part in module.modules()
    )


def rows(t: Tensor) -> Tensor:
    """(..., n) → (N, n)."""
    return t.reshape(-1, t.shape[-1])
