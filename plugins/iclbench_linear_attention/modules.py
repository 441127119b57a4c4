"""Multi-head LSA and ELSA, and stacks of them with skip connections."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iclbench.nn import fused

from . import residual
from .operators import attend


class LSA(nn.Module):
    """The sum of the heads' linear self-attentions (elsa, eqs. 8 and 39): (..., m, n) → the same.

    `weights` (3, heads, n, n) are W₁, W₂, W₃ of each head. They are drawn from N(0, init_std²).
    In training they may be those of several replicas, (R, 3, heads, n, n), of H (R, B, m, n). A
    class with other `projections` needs an `at` of its own, which training uses.
    """

    def __init__(self, n: int, heads: int, init_std: float, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.weights = nn.Parameter(init_std * torch.randn(3, heads, n, n))

    def forward(self, H: Tensor) -> Tensor:
        """Σ_k (HW₃)(HW₁)ᵀ(HW₂)."""
        if self.training:
            return self.at(H, slice(None))
        # What is evaluated stays as the paper writes it, to the last bit.
        return _summed(attend(*self.projections(H), self.causal))

    def at(self, H: Tensor, rows: slice) -> Tensor:
        """The output at some rows alone, (..., r, n), as Σ_k ((H(W₃W₁ᵀ))Hᵀ H)W₂.

        Two products with weights instead of three, for those rows alone, and the heads are rows of
        the products between them. Equal to `forward` but for rounding.
        """
        first, second, third = self.weights.unbind(-4)
        replicas, (heads, n, _) = second.shape[:-3], second.shape[-3:]
        lead, m = H.shape[:-2], H.shape[-2]
        count = len(range(*rows.indices(m)))
        wide = (third @ first.mT).transpose(-3, -2).reshape(*replicas, n, heads * n)
        # Rows of all prompts in one matrix: under vmap a product of few rows copies its weights.
        asked = H[..., rows, :].reshape(*replicas, -1, n)
        left = (asked @ wide).reshape(*lead, count * heads, n)
        if self.causal:
            seen = torch.ones(m, m, dtype=H.dtype, device=H.device).tril()[rows]
            mixed = ((left @ H.mT) * seen.repeat_interleave(heads, dim=0)) @ H
        elif left.shape[-2] == 1:
            # Sums, since products with one row a prompt, and their gradients, are slow.
            mixed = ((left * H).sum(dim=-1, keepdim=True) * H).sum(dim=-2)
        else:
            mixed = attend(left, H, H)
        outer = second.reshape(*replicas, heads * n, n)
        summed: Tensor = mixed.reshape(*replicas, -1, heads * n) @ outer
        return summed.reshape(*lead, count, n)

    def projections(self, H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """HW₃, HW₁ and HW₂ of every head, (..., heads, m, n) each."""
        first, second, third = (_of_heads(H, weights) for weights in self.weights.unbind())
        return third, first, second


def _of_heads(H: Tensor, weights: Tensor) -> Tensor:
    """HW of each head's W, (heads, n, n), by one product: (..., m, n) → (..., heads, m, n)."""
    heads, n, _ = weights.shape
    wide = weights.transpose(0, 1).reshape(n, heads * n)
    projected: Tensor = (H @ wide).reshape(*H.shape[:-1], heads, n)
    return projected.movedim(-2, -3)


def _summed(mixed: Tensor) -> Tensor:
    """The sum over heads, (..., heads, m, n) → (..., m, n)."""
    return mixed.squeeze(-3) if mixed.shape[-3] == 1 else mixed.sum(dim=-3)


class ELSA(LSA):
    """LSA with bias matrices, `biases` (3, heads, m, n), which start at 0 (elsa, eqs. 16, 58)."""

    def __init__(self, m: int, n: int, heads: int, init_std: float, causal: bool = False) -> None:
        super().__init__(n, heads, init_std, causal)
        self.biases = nn.Parameter(torch.zeros(3, heads, m, n))

    def at(self, H: Tensor, rows: slice) -> Tensor:
        """The output at some rows alone, (..., r, n)."""
        return _summed(attend(*self.projections(H), self.causal))[..., rows, :]

    def projections(self, H: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """HW₃ + B₃, HW₁ + B₁ and HW₂ + B₂ of every head, (..., heads, m, n) each."""
        third, first, second = super().projections(H)
        of_first, of_second, of_third = self.biases.unbind()
        return third + of_third, first + of_first, second + of_second


class Step(nn.Module):
    """H + P, P the blocks in sequence (elsa, eqs. 38 and 57); then H + mlp(H), if there is one."""

    def __init__(self, blocks: list[nn.Module], mlp: nn.Module | None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.mlp = mlp
        self.unmapped = False  # set by the engine: then `residual` may be used

    def forward(self, H: Tensor) -> Tensor:
        """(..., m, n) → (..., m, n)."""
        weights = self._weights_of_one_step(H)
        if weights is not None:
            H = residual.rows(H, weights)
        else:
            P = H
            for block in self.blocks:
                P = block(P)
            H = H + P
        return H if self.mlp is None else H + self.mlp(H)

    def cell(self, H: Tensor, row: int, column: int) -> Tensor:
        """One cell of `forward`, (..., 1, 1)."""
        columns = slice(column, column + 1)
        weights = self._weights_of_one_step(H)
        if weights is not None and self.mlp is None:
            return residual.cells(H, weights, row, columns)
        rows, P = slice(row, row + 1), H
        for block in self.blocks[:-1]:
            P = block(P)
        block = self.blocks[-1]
        last = block.at(P, rows) if isinstance(block, LSA) else block(P)[..., rows, :]
        H = H[..., rows, :] + last
        return (H if self.mlp is None else H + self.mlp(H))[..., columns]

    @property
    def takes_replicas(self) -> bool:
        """Whether `forward` and `cell` are also of several replicas, (R, B, m, n), in training."""
        return self.mlp is None and all(type(block) is LSA for block in self.blocks)

    def _weights_of_one_step(self, H: Tensor) -> Tensor | None:
        """The weights of H + LSA(H) where that is computed as one, or None."""
        if not (self.training and self.unmapped) or torch.is_autocast_enabled(H.device.type):
            return None
        block: Any = self.blocks[0]
        one = type(block) is LSA and not block.causal and len(self.blocks) == 1
        return block.weights if one and not fused.watched(block) else None


class Stack(nn.Module):
    """`depth` steps, each with its own parameters, or one that is applied `depth` times."""

    def __init__(self, steps: list[Step], depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.steps = nn.ModuleList(steps)

    def states(self, H: Tensor) -> list[Tensor]:
        """H₀, …, H_depth, each (..., m, n)."""
        found = [H]
        for t in range(self.depth):
            found.append(self.steps[t % len(self.steps)](found[-1]))
        return found
