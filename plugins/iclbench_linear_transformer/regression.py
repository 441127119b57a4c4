"""The block form on regression prompts: tokens (xᵢ, yᵢ) and queries (x, 0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from iclbench import TrainingContext

from .fast import FastRegressionModel
from .tokens import Tokens, state_size


class RegressionModel(nn.Module):
    """A model whose answer (B, Q, 1) is the scalar part of the queries after the last layer.

    With `weights`, it answers the weights (B, 1, D): its answers to the unit vectors. The layers
    are those of the block form with one vector part, x (von Oswald et al. 2023; Vladymyrov et al.
    2024). `normalize` divides x and y by √N and multiplies the answer by it, so that sums over the
    context become means. `homogeneous` divides y by its root mean square and multiplies the answer
    by it, so scaling y by t scales the answer by t.
    """

    def __init__(
        self, layers: list[nn.Module], dim: int, normalize: bool, homogeneous: bool, weights: bool
    ) -> None:
        super().__init__()
        self.layers, self.dim, self.weights = nn.ModuleList(layers), dim, weights
        self.normalize, self.homogeneous = normalize, homogeneous

    def forward(self, prompt: Any) -> Tensor:
        """Return the prediction (B, Q, 1), or the weights (B, 1, D)."""
        return self.answer(prompt, self.last_scalars)

    def answer(self, prompt: Any, last_scalars: Callable[[Tensor, Tensor, int], Tensor]) -> Tensor:
        """The prediction for a prompt; `last_scalars` is that of this model or of its fast form."""
        x, y, query = prompt.x, prompt.y[..., 0], prompt.query
        if self.weights:
            dim = x.shape[-1]
            unit = torch.eye(dim, dtype=x.dtype, device=x.device)
            # A linear predictor's values at the unit vectors are its weights.
            query = unit.expand(*x.shape[:-2], dim, dim)
        factor = torch.ones_like(y[..., :1])
        if self.homogeneous:
            scale = y.square().mean(dim=-1, keepdim=True).sqrt()
            # A context with y = 0 keeps its scale, rather than dividing by 0.
            factor = torch.where(scale > 0, scale, factor)
            y = y / factor
        if self.normalize:
            root = x.shape[-2] ** 0.5
            # Products of two tokens are then divided by N; `factor` undoes the answer's √N.
            x, y, query, factor = x / root, y / root, query / root, factor * root
        vectors = torch.cat([x, query], dim=-2)
        scalars = torch.cat([y, torch.zeros_like(query[..., 0])], dim=-1)
        answers = (last_scalars(vectors, scalars, query.shape[-2]) * factor).unsqueeze(-1)
        return answers.mT if self.weights else answers

    def last_scalars(self, vectors: Tensor, scalars: Tensor, queries: int) -> Tensor:
        """Map vectors (B, S, D) and scalars (B, S) to the queries' final scalars (B, Q)."""
        tokens = Tokens(vectors.unsqueeze(2), scalars)
        mask = torch.ones_like(vectors[..., 0, :])
        for layer in self.layers:
            tokens = layer(tokens, mask, queries)
        return tokens.scalars[:, -queries:]

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: of N tokens of one vector x and the scalar y."""
        return (state_size(length - 1, self.dim + 1),) * len(self.layers)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`."""
        return FastRegressionModel(self)
