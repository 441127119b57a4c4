"""The MLP of a block as one step of autograd, for training on a CPU.

oneDNN adds a bias or residual while it multiplies, and ReLU works in place, so that a wide MLP
passes over memory less often. Results differ from the operators one by one in rounding alone. It
can neither be vmapped nor differentiated twice, and is for a module that has an attribute
`unmapped`: the engine sets it where it calls a module as it is.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

#: Elements of the input below which autograd in Python costs more than is saved
#: (`python -m benchmarks.fused`).
WORTH_FUSING = 100_000

#: Whether this build of torch has the operators, which are not a part of its stable interface.
HAS_ONEDNN = torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def usable(x: Tensor, layers: nn.Sequential) -> bool:
    """Whether `mlp` is there for x and these layers, saves time and hides nothing from hooks."""
    return (
        x.numel() >= WORTH_FUSING
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and HAS_ONEDNN
        and not torch.is_autocast_enabled("cpu")
        and [type(layer) for layer in layers] == [nn.Linear, nn.ReLU, nn.Linear]
        and not watched(layers)
    )


def mlp(x: Tensor, layers: nn.Sequential, onto: Tensor) -> Tensor:
    """onto + layers(x), which are linear, ReLU, linear; x and `onto` (..., width) → the same."""
    first, _, second = cast(tuple[nn.Linear, nn.ReLU, nn.Linear], tuple(layers))
    y: Tensor = _MLP.apply(x, onto, first.weight, first.bias, second.weight, second.bias)  # type: ignore[no-untyped-call]
    return y


def watched(module: nn.Module) -> bool:
    """Whether a hook would miss that a part of the module is not called."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or part._backward_hooks
        or part._backward_pre_hooks
        for part in module.modules()
    )


class _MLP(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, onto: Tensor, *parameters: Tensor) -> Tensor:
        w1, b1, w2, b2 = parameters
        hidden = _linear(x, w1, b1).relu_()  # oneDNN's own makes 0 of NaN
        ctx.save_for_backward(x, hidden, w1, w2)
        y: Tensor = torch.ops.mkldnn._linear_pointwise.binary(hidden, onto, w2, b2, "add")
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, hidden, w1, w2 = ctx.saved_tensors
        of_x, of_onto, of_w1, of_b1, of_w2, of_b2 = ctx.needs_input_grad
        inner = _linear(grad, w2.mT)
        torch.ops.aten.threshold_backward.grad_input(inner, hidden, 0, grad_input=inner)
        return (
            _linear(inner, w1.mT) if of_x else None,
            grad if of_onto else None,
            rows(inner).mT @ rows(x) if of_w1 else None,
            rows(inner).sum(0) if of_b1 else None,
            rows(grad).mT @ rows(hidden) if of_w2 else None,
            rows(grad).sum(0) if of_b2 else None,
        )


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """xWᵀ + b, by an operator that torch has for compiled code."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


def rows(t: Tensor) -> Tensor:
    """(..., n) → (N, n)."""
    return t.reshape(-1, t.shape[-1])
