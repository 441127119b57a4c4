"""The paper's Trained TF: the same tokens and cross-attention, all attention matrices free."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from .kernels import DEGREE, Kernel, attention, covariates, expectation


class FreeHead(nn.Module):
    """P Σᵢ κ(sW_K eᵢ, sW_Q eⱼ) W_V eᵢ with matrices (D, D) that multiply tokens from the left."""

    def __init__(self, width: int, kernel: Kernel, degree: int, scale: float) -> None:
        super().__init__()
        self.kernel: Kernel = kernel
        self.degree, self.scale = degree, scale
        self.query, self.key, self.value, self.project = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width))) for _ in range(4)
        )

    def forward(self, tokens: Tensor, seen: Tensor) -> Tensor:
        """(B, S, D) → (B, S, D); `seen` (S, S) says which keys a position sees."""
        scaled = self.scale * tokens
        queries, keys = scaled @ self.query.mT, scaled @ self.key.mT
        weights = attention(self.kernel, queries, keys, seen, self.degree)
        return weights @ (tokens @ self.value.mT) @ self.project.mT


class FreeForm(nn.Module):
    """Blocks of self-attention and cross-attention over tokens (x, w_y, E, f) (categorical, 4).

    One block has the tokens (x, w_y − w̄, f), one head and no cross-attention (3.5); more have two
    heads each, the second of which sees its own position too. `embedding` is W_e (C, d'), and the
    answer is W_e f of the queries: R of section 3.3 picks f, as in the other form. `scale` is a
    fixed factor s on what queries and keys are made of; None: `first_scale`.
    """

    def __init__(
        self,
        *,
        classes: int,
        dim: int,
        width: int,
        blocks: int,
        kernel: Kernel,
        degree: int = DEGREE,
        normalize: bool = False,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.width, self.single, self.normalize = dim, width, blocks == 1, normalize
        self.embedding = nn.Parameter(torch.randn(classes, width))
        tokens = dim + (2 if self.single else 3) * width
        factor = first_scale(kernel, blocks, tokens) if scale is None else scale
        self.first = nn.ModuleList(FreeHead(tokens, kernel, degree, factor) for _ in range(blocks))
        second = 0 if self.single else blocks
        self.second = nn.ModuleList(FreeHead(tokens, kernel, degree, factor) for _ in range(second))

    def forward(self, prompt: Any) -> Tensor:
        """Logits (B, Q, C)."""
        n, width = prompt.x.shape[1], self.width
        x = covariates(prompt, self.normalize)
        count = x.shape[1]
        context = torch.zeros(count, count, dtype=torch.bool, device=x.device)
        context[:, :n] = True
        itself = context | torch.eye(count, dtype=torch.bool, device=x.device)
        f = torch.zeros(*x.shape[:2], width, dtype=x.dtype, device=x.device)
        w = look_up(prompt.y, self.embedding)
        expected = expectation(f, self.embedding)
        if self.single:
            w = w - expected[:, :n]
        given = torch.cat([w, f[:, n:]], dim=1)
        parts = [x, given, f] if self.single else [x, given, expected, f]
        tokens = torch.cat(parts, dim=2)
        for k, head in enumerate(self.first):
            change = head(tokens, context)
            if self.single:
                tokens = tokens + change
            else:
                tokens = tokens + change + self.second[k](tokens, itself)
                crossed = expectation(tokens[..., -width:], self.embedding)
                before = tokens[..., : self.dim + width]
                erased = tokens[..., self.dim + width : -width]
                tokens = torch.cat([before, erased + crossed, tokens[..., -width:]], dim=2)
        return tokens[:, n:, -width:] @ self.embedding.mT


def first_scale(kernel: Kernel, blocks: int, width: int) -> float:
    """1; D^−½ where a second block's scores, which see f, would overflow in an unbounded kernel."""
    unbounded = kernel in {"exponential", "polynomial"}
    return 1.0 / math.sqrt(width) if unbounded and blocks > 1 else 1.0
