"""The paper's Trained TF: the same tokens and cross-attention, all attention matrices free."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from .config import GDTransformerConfig
from .kernels import Kernel, attention, covariates, expectation, state_size


class FreeHead(nn.Module):
    """P Σᵢ κ(sW_K eᵢ, sW_Q eⱼ) W_V eᵢ with matrices (D, D) that multiply tokens from the left."""

    def __init__(self, width: int, kernel: Kernel, degree: int, scale: float) -> None:
        """Build for tokens of width D; `scale` is s."""
        super().__init__()
        self.kernel: Kernel = kernel
        self.degree, self.scale = degree, scale
        self.query, self.key, self.value, self.project = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, width))) for _ in range(4)
        )

    def forward(self, tokens: Tensor, seen: Tensor) -> Tensor:
        """Map (B, S, D) to (B, S, D); `seen` (S, S) says which keys a position sees."""
        scaled = self.scale * tokens
        queries, keys = scaled @ self.query.mT, scaled @ self.key.mT
        weights = attention(self.kernel, queries, keys, seen, self.degree)
        return weights @ (tokens @ self.value.mT) @ self.project.mT

    def state_size(self, length: int) -> int:
        """Keys and values of all positions or, where that is smaller, the sum over them."""
        width = self.value.shape[0]
        rows, sums = 2 * length * width, state_size(self.kernel, self.degree, width, width)
        return rows if sums is None else min(rows, sums)


class FreeForm(nn.Module):
    """Blocks of self-attention and cross-attention over tokens (x, w_y, E, f) (Wang et al., 4).

    A single block has tokens (x, w_y − w̄, f), one head and no cross-attention (3.5). Several blocks
    have two heads each; the second also sees its own position. `embedding` is W_e (C, d'). The
    answer is W_e f of the queries (R of section 3.3 selects f), as in the constrained form.
    """

    def __init__(self, classes: int, dim: int, config: GDTransformerConfig) -> None:
        """Build for covariates of width `dim`."""
        super().__init__()
        kernel, degree, blocks = config.kernel, config.degree, config.blocks
        self.dim, self.width, self.single = dim, config.embedding, blocks == 1
        self.normalize = config.normalize
        # N(0, 1), like the task's own W_e.
        self.embedding = nn.Parameter(torch.randn(classes, self.width))
        tokens = dim + (2 if self.single else 3) * self.width
        scale = default_scale(kernel, blocks, tokens) if config.scale is None else config.scale
        self.first = nn.ModuleList(FreeHead(tokens, kernel, degree, scale) for _ in range(blocks))
        second = 0 if self.single else blocks
        self.second = nn.ModuleList(FreeHead(tokens, kernel, degree, scale) for _ in range(second))

    def forward(self, prompt: Any) -> Tensor:
        """Return the logits of the queries, (B, Q, C)."""
        n, width = prompt.x.shape[1], self.width
        x = covariates(prompt, self.normalize)
        count = x.shape[1]
        context = torch.zeros(count, count, dtype=torch.bool, device=x.device)
        context[:, :n] = True
        context_and_self = context | torch.eye(count, dtype=torch.bool, device=x.device)
        f = torch.zeros(*x.shape[:2], width, dtype=x.dtype, device=x.device)
        w = look_up(prompt.y, self.embedding)
        expected = expectation(f, self.embedding)
        if self.single:
            # The only expectation is that of f = 0, so it needs no part of its own.
            w = w - expected[:, :n]
        # Queries have no class; f is zero there.
        values = torch.cat([w, f[:, n:]], dim=1)
        parts = [x, values, f] if self.single else [x, values, expected, f]
        tokens = torch.cat(parts, dim=2)
        for k, head in enumerate(self.first):
            change = head(tokens, context)
            if self.single:
                tokens = tokens + change
            else:
                tokens = tokens + change + self.second[k](tokens, context_and_self)
                # Cross-attention adds E(w_e)|f to part E, which head 2 is meant to have erased.
                f = tokens[..., -width:]
                expected = tokens[..., self.dim + width : -width] + expectation(f, self.embedding)
                tokens = torch.cat([tokens[..., : self.dim + width], expected, f], dim=2)
        return tokens[:, n:, -width:] @ self.embedding.mT

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: that of the one or two heads of each block."""
        head: Any = self.first[0]
        return ((1 if self.single else 2) * head.state_size(length),) * len(self.first)


def default_scale(kernel: Kernel, blocks: int, width: int) -> float:
    """The factor s for tokens of width D: 1, or D^−½ for several blocks of a fast-growing kernel.

    From the second block on, scores depend on f. Exponential and polynomial kernels grow faster
    than linearly and would overflow.
    """
    grows_fast = kernel in {"exponential", "polynomial"}
    return 1.0 / math.sqrt(width) if grows_fast and blocks > 1 else 1.0
