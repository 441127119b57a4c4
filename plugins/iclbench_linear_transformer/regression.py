"""The block form on regression prompts: tokens (xᵢ, yᵢ) and queries (x, 0)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .tokens import Tokens


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
        unit = torch.eye(prompt.x.shape[2], dtype=prompt.x.dtype, device=prompt.x.device)
        return self.answers(prompt.x, prompt.y[..., 0], unit.expand(len(prompt.x), -1, -1)).mT

    def answers(self, x: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """The answers (B, Q, 1) to queries (B, Q, D), from x (B, N, D) and y (B, N)."""
        factor = torch.ones_like(y[:, :1])
        if self.homogeneous:
            size = y.square().mean(dim=1, keepdim=True).sqrt()
            factor = torch.where(size > 0, size, factor)
            y = y / factor
        if self.normalize:
            root = x.shape[1] ** 0.5
            x, y, query, factor = x / root, y / root, query / root, factor * root
        vectors = torch.cat([x, query], dim=1).unsqueeze(2)
        scalars = torch.cat([y, torch.zeros_like(query[..., 0])], dim=1)
        tokens, queries = Tokens(vectors, scalars), query.shape[1]
        there = torch.ones_like(x[:, 0])
        for layer in self.layers:
            tokens = layer(tokens, there, queries)
        return (tokens.scalars[:, -queries:] * factor).unsqueeze(2)
