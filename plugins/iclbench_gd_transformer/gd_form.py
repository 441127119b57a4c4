"""The constrained form: K blocks are K steps of functional gradient descent (Wang et al., 3)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from .config import GDTransformerConfig
from .kernels import Kernel, attention, covariates, expectation, state_size


class GDForm(nn.Module):
    """f ← f + Σ_m P_m (α_k/N) Σᵢ κ(Λ_m xᵢ, Λ_m xⱼ)(w_yᵢ − E(w_e)|fᵢ) from f = 0 (eq. 3; App. H).

    The parameters are:

    - `embedding`: W_e (C, d')
    - `step`: α (blocks,)
    - `log_scale`: logarithm of the factor σ on x in every kernel
    - `project`: P (heads, d', d'), or its diagonals (heads, d'); M of Appendix C for one head
    - `diagonal`: Λ (heads, d); None for one head

    With `bias`, each f_m has an offset b_m, which adds 1/N to each weight. E is overwritten, or
    erased by head 2: E ← E − Σᵢ κ(λxᵢ, λxⱼ)Eᵢ + E(w_e)|fⱼ, whose keys are the context and the
    position itself (3.2.2).
    """

    diagonal: Tensor | None

    def __init__(self, classes: int, dim: int, config: GDTransformerConfig) -> None:
        """Build for covariates of width `dim`."""
        super().__init__()
        width, heads = config.embedding, config.heads
        self.dim, self.kernel = dim, config.kernel
        self.blocks, self.erase = config.blocks, config.erase
        self.degree, self.bias, self.normalize = config.degree, config.bias, config.normalize
        scale = 1.0 / math.sqrt(dim) if config.scale is None else config.scale
        self.embedding = nn.Parameter(torch.randn(classes, width))
        self.step = nn.Parameter(torch.ones(config.blocks))
        # A logarithm, so that training can't change the scale's sign.
        self.log_scale = nn.Parameter(torch.tensor(scale).log())
        start = torch.eye(width) if config.projection == "full" else torch.ones(width)
        # 1/heads, so that the sum of the heads starts as one step.
        self.project = nn.Parameter(start.expand(heads, *start.shape) / heads)
        # Perturbed, since equal heads would have equal gradients and stay equal.
        self.diagonal = nn.Parameter(1.0 + 0.1 * torch.randn(heads, dim)) if heads > 1 else None

    def forward(self, prompt: Any) -> Tensor:
        """Return the logits W_e f of the queries, (B, Q, C)."""
        f = self.states(prompt)[-1][0][:, prompt.x.shape[1] :]
        return f @ self.embedding.mT

    def states(self, prompt: Any) -> list[tuple[Tensor, Tensor]]:
        """f and E(w_e), both (B, N + Q, d'), before the first block and after every block."""
        n = prompt.x.shape[1]
        x = covariates(prompt, self.normalize)
        w = look_up(prompt.y, self.embedding)
        # Covariates are the same in all blocks, so the attention weights are computed once.
        weights = [
            self._weights(inputs, n) for inputs in kernel_inputs(x, self.log_scale, self.diagonal)
        ]
        erasing = None if self.erase is None else self._erasing_weights(x, n, self.erase)
        f = torch.zeros(*x.shape[:2], w.shape[2], dtype=w.dtype, device=w.device)
        expected = expectation(f, self.embedding)
        states = [(f, expected)]
        for k in range(self.blocks):
            # Computed once per block: all heads see the same error.
            values = w - expected[:, :n]
            for project, head_weights in zip(self.project, weights, strict=True):
                change = head_weights @ values
                f = f + self.step[k] * (
                    change * project if project.ndim == 1 else change @ project.mT
                )
            # What head 2 leaves of the last E; an exact overwrite leaves nothing.
            remainder = torch.zeros_like(expected)
            if erasing is not None:
                remainder = expected - erasing @ expected
            expected = remainder + expectation(f, self.embedding)
            states.append((f, expected))
        return states

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: the covariates once, and the values of every block.

        Where they are fewer numbers, every head's A and b instead (Appendix B).
        """
        width = self.embedding.shape[1]
        # Head 2 reads the last E beside w − E.
        values = length * width * (1 if self.erase is None else 2)
        rows = (length * self.dim + values, *(values for _ in range(self.blocks - 1)))
        one_head = state_size(self.kernel, self.degree, self.dim, width)
        if one_head is None or self.erase is not None:
            return rows
        sums = (len(self.project) * one_head + width * self.bias,) * self.blocks
        return min(rows, sums, key=sum)

    def _weights(self, x: Tensor, n: int) -> Tensor:
        """κ(xᵢ, x)/N of the context's xᵢ for every position of x, (B, N + Q, N)."""
        weights = attention(self.kernel, x, x[:, :n], degree=self.degree)
        return weights + 1.0 / n if self.bias else weights

    def _erasing_weights(self, x: Tensor, n: int, sharpness: float) -> Tensor:
        """Head 2: softmax or RBF attention of λx to the context and to itself, (B, S, S)."""
        count = x.shape[1]
        seen = torch.eye(count, dtype=torch.bool, device=x.device)
        seen[:, :n] = True
        kernel: Kernel = "softmax" if self.kernel == "softmax" else "rbf"
        scaled = sharpness * x
        weights = attention(kernel, scaled, scaled, seen)
        # An RBF sum must not be divided by the number of keys: a position has κ = 1 with itself.
        return weights if kernel == "softmax" else weights * seen[0].sum()


def kernel_inputs(x: Tensor, log_scale: Tensor, diagonal: Tensor | None) -> list[Tensor]:
    """σ Λ_m x for each head; a single head has no Λ."""
    # The kernel multiplies or subtracts two inputs, so both carry σ.
    x = x * log_scale.exp()
    return [x] if diagonal is None else [x * row for row in diagonal]
