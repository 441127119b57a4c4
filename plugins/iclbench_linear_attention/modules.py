"""Multi-head LSA and ELSA, and stacks of them with skip connections."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from iclbench import TrainingContext

from .fast import FastLSA
from .operators import attend


class LSA(nn.Module):
    """The sum of the heads' linear self-attentions (elsa, eqs. 8 and 39): (..., m, n) → the same.

    `weights` (3, heads, n, n) are W₁, W₂, W₃ of each head. They are drawn from N(0, init_std²).
    """

    def __init__(self, n: int, heads: int, init_std: float, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.weights = nn.Parameter(init_std * torch.randn(3, heads, n, n))

    def forward(self, H: Tensor) -> Tensor:
        """Σ_k (HW₃)(HW₁)ᵀ(HW₂)."""
        mixed = attend(*self.projections(H), self.causal)
        return mixed.squeeze(-3) if mixed.shape[-3] == 1 else mixed.sum(dim=-3)

    def projections(self, H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """HW₃, HW₁ and HW₂ of every head, (..., heads, m, n) each."""
        first, second, third = (_project(H, weights) for weights in self.weights.unbind())
        return third, first, second

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`; a subclass has no other form."""
        return FastLSA(self, context.positions) if type(self) is LSA else None


class ELSA(LSA):
    """LSA with bias matrices, `biases` (3, heads, m, n), which start at 0 (elsa, eqs. 16, 58)."""

    def __init__(self, m: int, n: int, heads: int, init_std: float, causal: bool = False) -> None:
        super().__init__(n, heads, init_std, causal)
        self.biases = nn.Parameter(torch.zeros(3, heads, m, n))

    def projections(self, H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """HW₃ + B₃, HW₁ + B₁ and HW₂ + B₂ of every head, (..., heads, m, n) each."""
        third, first, second = super().projections(H)
        bias1, bias2, bias3 = self.biases.unbind()
        return third + bias3, first + bias1, second + bias2


class Step(nn.Module):
    """H + P, P the blocks in sequence (elsa, eqs. 38 and 57); then H + mlp(H), if there is one."""

    def __init__(self, blocks: list[nn.Module], mlp: nn.Module | None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.mlp = mlp

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., m, n)."""
        P = H
        for block in self.blocks:
            P = block(P)
        H = H + P
        return H if self.mlp is None else H + self.mlp(H)


class Stack(nn.Module):
    """`depth` steps, each with its own parameters, or one that is applied `depth` times."""

    def __init__(self, steps: list[nn.Module], depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.steps = nn.ModuleList(steps)

    def states(self, H: Tensor) -> list[Tensor]:
        """H₀, …, H_depth, each (..., m, n)."""
        states = [H]
        for t in range(self.depth):
            states.append(self.steps[t % len(self.steps)](states[-1]))
        return states


def _project(H: Tensor, weights: Tensor) -> Tensor:
    """HW of each head's W, (heads, n, n), by one product: (..., m, n) → (..., heads, m, n)."""
    heads, n, _ = weights.shape
    wide = weights.transpose(0, 1).reshape(n, heads * n)
    projected: Tensor = (H @ wide).reshape(*H.shape[:-1], heads, n)
    return projected.movedim(-2, -3)
