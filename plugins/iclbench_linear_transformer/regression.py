"""The block form on regression prompts: tokens (xᵢ, yᵢ) and queries (x, 0)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iclbench.nn import fused

from .tokens import Tokens
from .trained import last_tokens


class RegressionModel(nn.Module):
    """The answer (B, Q, 1) is the queries' scalar part after the last layer; or weights (B, 1, D).

    The weights are the answers to the unit vectors. The layers are those of the block form with one
    vector part, x (von Oswald et al. 2023; Vladymyrov et al. 2024). With `normalize` x and y are
    divided by √N first and the answer is multiplied by it, as if sums were means; with
    `homogeneous` y is divided by its root mean square and the answer multiplied by it: t times y
    gives t times the answer.
    """

    def __init__(
        self, layers: list[nn.Module], normalize: bool, homogeneous: bool, weights: bool
    ) -> None:
        super().__init__()
        self.layers, self.weights = nn.ModuleList(layers), weights
        self.normalize, self.homogeneous = normalize, homogeneous

    def forward(self, prompt: Any) -> Tensor:
        """The prediction (B, Q, 1), or the weights (B, 1, D)."""
        if not self.weights:
            return self.answers(prompt.x, prompt.y[..., 0], prompt.query)
        dim = prompt.x.shape[-1]
        unit = torch.eye(dim, dtype=prompt.x.dtype, device=prompt.x.device)
        unit = unit.expand(*prompt.x.shape[:-2], dim, dim)
        return self.answers(prompt.x, prompt.y[..., 0], unit).mT

    #: In training, prompts may be of several replicas, with a dimension before the batch's.
    takes_replicas = True

    def answers(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """The answers (B, Q, 1) to queries (B, Q, D), from x (B, N, D) and y (B, N)."""
        factor = torch.ones_like(y[..., :1])
        if self.homogeneous:
            size = y.square().mean(dim=-1, keepdim=True).sqrt()
            factor = torch.where(size > 0, size, factor)
            y = y / factor
        if self.normalize:
            root = x.shape[-2] ** 0.5
            x, y, query, factor = x / root, y / root, query / root, factor * root
        vectors = torch.cat([x, query], dim=-2)
        scalars = torch.cat([y, torch.zeros_like(query[..., 0])], dim=-1)
        return (self._last(vectors, scalars, query.shape[-2]) * factor).unsqueeze(-1)

    def _last(self, vectors: Tensor, scalars: Tensor, queries: int) -> Tensor:
        """The queries' scalars after all layers, (B, Q), of vectors (B, S, D), scalars (B, S)."""
        there = torch.ones_like(vectors[..., 0, :])
        if self.training and not fused.watched(self):
            tokens = Tokens(vectors.unsqueeze(-1), scalars)
            return last_tokens(list(self.layers), tokens, there, queries).scalars
        tokens = Tokens(vectors.unsqueeze(2), scalars)
        for layer in self.layers:
            tokens = layer(tokens, there, queries)
        return tokens.scalars[:, -queries:]
