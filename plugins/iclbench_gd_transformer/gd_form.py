"""The constrained form: K blocks are K steps of functional gradient descent (categorical, 3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from .kernels import Kernel, attention, expectation


class GDForm(nn.Module):
    """f ← f + Σ_m P_m (α_k/N) Σᵢ κ(Λ_m xᵢ, Λ_m xⱼ)(w_yᵢ − E(w_e)|fᵢ) from f = 0 (eq. 3; App. H).

    Parameters: `embedding` W_e (C, d'); `step` α (blocks,); `log_scale`, the logarithm of the
    factor σ on x in every kernel; `project` P (heads, d', d'), M of Appendix C for one head;
    `diagonal` Λ (heads, d) for several. E is overwritten, or erased by head 2: E ← E − Σᵢ κ(λxᵢ,
    λxⱼ)Eᵢ + E(w_e)|fⱼ, whose keys are the context and the position itself (3.2.2).
    """

    diagonal: Tensor | None

    def __init__(
        self,
        *,
        classes: int,
        dim: int,
        width: int,
        blocks: int,
        heads: int,
        kernel: Kernel,
        scale: float,
        erase: float | None,
    ) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.blocks, self.erase = blocks, erase
        self.embedding = nn.Parameter(torch.randn(classes, width))
        self.step = nn.Parameter(torch.ones(blocks))
        self.log_scale = nn.Parameter(torch.tensor(scale).log())
        self.project = nn.Parameter(torch.eye(width).repeat(heads, 1, 1) / heads)
        self.diagonal = nn.Parameter(1.0 + 0.1 * torch.randn(heads, dim)) if heads > 1 else None

    def forward(self, prompt: Any) -> Tensor:
        """Logits W_e f of the queries, (B, Q, C)."""
        f = self.states(prompt)[-1][0][:, prompt.x.shape[1] :]
        return f @ self.embedding.mT

    def states(self, prompt: Any) -> list[tuple[Tensor, Tensor]]:
        """f and E(w_e), each (B, N + Q, d'), before and after every block."""
        n = prompt.x.shape[1]
        x = torch.cat([prompt.x, prompt.query], dim=1)
        w = look_up(prompt.y, self.embedding)
        # The covariates do not change, so neither do the weights.
        weights = self._weights(x, n)
        f = torch.zeros(*x.shape[:2], w.shape[2], dtype=x.dtype, device=x.device)
        expected = expectation(f, self.embedding)
        erasing = None if self.erase is None else self._erasing(x, n, self.erase)
        found = [(f, expected)]
        for k in range(self.blocks):
            values = w - expected[:, :n]
            for project, attended in zip(self.project, weights, strict=True):
                f = f + self.step[k] * (attended @ values) @ project.mT
            left = torch.zeros_like(expected)
            if erasing is not None:
                left = expected - erasing @ expected
            expected = left + expectation(f, self.embedding)
            found.append((f, expected))
        return found

    def _weights(self, x: Tensor, n: int) -> list[Tensor]:
        """κ of the context's covariates for every position, a head each, (B, N + Q, N)."""
        # A kernel that squares or multiplies its inputs takes σ in both.
        x = x * self.log_scale.exp()
        heads = [x] if self.diagonal is None else [x * row for row in self.diagonal]
        return [attention(self.kernel, each, each[:, :n]) for each in heads]

    def _erasing(self, x: Tensor, n: int, sharpness: float) -> Tensor:
        """Head 2: softmax or RBF attention of λx, to the context and to itself, (B, S, S)."""
        count = x.shape[1]
        seen = torch.eye(count, dtype=torch.bool, device=x.device)
        seen[:, :n] = True
        kind: Kernel = "softmax" if self.kernel == "softmax" else "rbf"
        scaled = sharpness * x
        found = attention(kind, scaled, scaled, seen)
        return found if kind == "softmax" else found * seen[0].sum()
