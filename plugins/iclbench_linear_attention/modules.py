"""Multi-head LSA and ELSA, and stacks of them with skip connections."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from iclbench import TrainingContext

from .fast import FastLSA
from .operators import attend


class LSA(nn.Module):
    """Multi-head linear self-attention, (..., m, n) → (..., m, n) (Hagiwara, eqs. 8 and 39).

    The heads are summed. `weights` (3, heads, n, n) holds W₁, W₂, W₃ of each head, drawn from
    N(0, init_std²).
    """

    def __init__(self, n: int, heads: int, init_std: float, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.weights = nn.Parameter(init_std * torch.randn(3, heads, n, n))

    def forward(self, H: Tensor) -> Tensor:
        """Return Σ_k (HW₃)(HW₁)ᵀ(HW₂), summed over heads."""
        mixed = attend(*self.projections(H), self.causal)
        # A sum over one head would copy the result.
        return mixed.squeeze(-3) if mixed.shape[-3] == 1 else mixed.sum(dim=-3)

    def projections(self, H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return HW₃, HW₁ and HW₂, each (..., heads, m, n)."""
        first, second, third = (_project(H, weights) for weights in self.weights.unbind())
        # The order of the factors in (HW₃)(HW₁)ᵀ(HW₂).
        return third, first, second

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: HᵀH, from which (HW₁)ᵀ(HW₂) of every head follows."""
        return (self.weights[0, 0].numel(),)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`; None for a subclass, whose projections differ."""
        return FastLSA(self, context.positions) if type(self) is LSA else None


class ELSA(LSA):
    """LSA with bias matrices (Hagiwara, eqs. 16 and 58): `biases` (3, heads, m, n) start at 0."""

    def __init__(self, m: int, n: int, heads: int, init_std: float, causal: bool = False) -> None:
        super().__init__(n, heads, init_std, causal)
        # With B = 0 an untrained ELSA is an LSA. The biases fix m, which LSA leaves open.
        self.biases = nn.Parameter(torch.zeros(3, heads, m, n))

    def projections(self, H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return HW₃ + B₃, HW₁ + B₁ and HW₂ + B₂, each (..., heads, m, n)."""
        third, first, second = super().projections(H)
        bias1, bias2, bias3 = self.biases.unbind()
        return third + bias3, first + bias1, second + bias2

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: with biases of each position, the product of each head."""
        return (self.weights[0].numel(),)


class Step(nn.Module):
    """Maps H to H + P, where P = blocks(H) in sequence (Hagiwara, eqs. 38 and 57).

    With an MLP, the result is then mapped from H to H + mlp(H).
    """

    def __init__(self, blocks: list[nn.Module], mlp: nn.Module | None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.mlp = mlp

    def forward(self, H: Tensor) -> Tensor:
        """Map (..., m, n) to (..., m, n)."""
        # Blocks have no skip connections between them: the second sees P₁ only (eqs. 57–59).
        P = H
        for block in self.blocks:
            P = block(P)
        H = H + P
        return H if self.mlp is None else H + self.mlp(H)


class Stack(nn.Module):
    """`depth` steps with their own parameters, or one step applied `depth` times."""

    def __init__(self, steps: list[nn.Module], depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.steps = nn.ModuleList(steps)

    def states(self, H: Tensor) -> list[Tensor]:
        """Return H₀, …, H_depth, each (..., m, n)."""
        states = [H]
        for t in range(self.depth):
            # With shared parameters there is a single step, and the index is always 0.
            states.append(self.steps[t % len(self.steps)](states[-1]))
        return states


def _project(H: Tensor, weights: Tensor) -> Tensor:
    """Return HW for each head's W (heads, n, n): (..., m, n) → (..., heads, m, n)."""
    heads, n, _ = weights.shape
    # One wide product is faster than a batch of small ones.
    wide = weights.transpose(0, 1).reshape(n, heads * n)
    projected: Tensor = (H @ wide).reshape(*H.shape[:-1], heads, n)
    return projected.movedim(-2, -3)
