"""The constrained form: K blocks are K steps of functional gradient descent (categorical, 3)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from .kernels import DEGREE, Kernel, attention, covariates, expectation

Projection = Literal["full", "diagonal"]


class GDForm(nn.Module):
    """f ← f + Σ_m P_m (α_k/N) Σᵢ κ(Λ_m xᵢ, Λ_m xⱼ)(w_yᵢ − E(w_e)|fᵢ) from f = 0 (eq. 3; App. H).

    Parameters: `embedding` W_e (C, d'); `step` α (blocks,); `log_scale`, the logarithm of the
    factor σ on x in every kernel; `project` P (heads, d', d'), M of Appendix C for one head, or its
    diagonals (heads, d'); `diagonal` Λ (heads, d) for several heads. With `bias` every f_m has a
    b_m, which adds 1/N to each weight. E is overwritten, or erased by head 2: E ← E − Σᵢ κ(λxᵢ,
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
        degree: int = DEGREE,
        bias: bool = False,
        normalize: bool = False,
        projection: Projection = "full",
    ) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.blocks, self.erase = blocks, erase
        self.degree, self.bias, self.normalize = degree, bias, normalize
        self.embedding = nn.Parameter(torch.randn(classes, width))
        self.step = nn.Parameter(torch.ones(blocks))
        self.log_scale = nn.Parameter(torch.tensor(scale).log())
        start = torch.eye(width) if projection == "full" else torch.ones(width)
        self.project = nn.Parameter(start.expand(heads, *start.shape) / heads)
        self.diagonal = nn.Parameter(1.0 + 0.1 * torch.randn(heads, dim)) if heads > 1 else None

    def forward(self, prompt: Any) -> Tensor:
        """Logits W_e f of the queries, (B, Q, C)."""
        f = self.states(prompt)[-1][0][:, prompt.x.shape[1] :]
        return f @ self.embedding.mT

    def inputs(self, prompt: Any) -> list[Tensor]:
        """What each head's kernel sees of contexts and queries, (B, N + Q, d) each."""
        return kernel_inputs(covariates(prompt, self.normalize), self.log_scale, self.diagonal)

    def states(self, prompt: Any) -> list[tuple[Tensor, Tensor]]:
        """f and E(w_e), each (B, N + Q, d'), before and after every block."""
        n = prompt.x.shape[1]
        w = look_up(prompt.y, self.embedding)
        # The covariates do not change, so neither do the weights.
        weights = [self._weights(x, n) for x in self.inputs(prompt)]
        f = torch.zeros(*weights[0].shape[:2], w.shape[2], dtype=w.dtype, device=w.device)
        expected = expectation(f, self.embedding)
        erasing = None if self.erase is None else self._erasing(prompt, self.erase)
        found = [(f, expected)]
        for k in range(self.blocks):
            values = w - expected[:, :n]
            for project, attended in zip(self.project, weights, strict=True):
                change = attended @ values
                f = f + self.step[k] * (
                    change * project if project.ndim == 1 else change @ project.mT
                )
            left = torch.zeros_like(expected)
            if erasing is not None:
                left = expected - erasing @ expected
            expected = left + expectation(f, self.embedding)
            found.append((f, expected))
        return found

    def _weights(self, x: Tensor, n: int) -> Tensor:
        """κ(x, xᵢ)/N of the context's i for every position, (B, N + Q, N)."""
        found = attention(self.kernel, x, x[:, :n], degree=self.degree)
        return found + 1.0 / n if self.bias else found

    def _erasing(self, prompt: Any, sharpness: float) -> Tensor:
        """Head 2: softmax or RBF attention of λx, to the context and to itself, (B, S, S)."""
        x, n = covariates(prompt, self.normalize), prompt.x.shape[1]
        count = x.shape[1]
        seen = torch.eye(count, dtype=torch.bool, device=x.device)
        seen[:, :n] = True
        kind: Kernel = "softmax" if self.kernel == "softmax" else "rbf"
        scaled = sharpness * x
        found = attention(kind, scaled, scaled, seen)
        return found if kind == "softmax" else found * seen[0].sum()


def kernel_inputs(x: Tensor, log_scale: Tensor, diagonal: Tensor | None) -> list[Tensor]:
    """σ Λ_m x for each head; one head has no Λ."""
    # A kernel that squares or multiplies its inputs takes σ in both.
    x = x * log_scale.exp()
    return [x] if diagonal is None else [x * row for row in diagonal]
