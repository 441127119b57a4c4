"""Baselines for regression."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config

from .solver import Examples, LinearSolver, RegressionSolver


class Averaging(LinearSolver):
    """w = (1/N) Σ yᵢxᵢ, the estimator without an inverse."""

    name = "averaging"

    def weights(self, examples: Examples, config: Config) -> Tensor:
        """w (B, D, K)."""
        return examples.x.mT @ examples.y / examples.x.shape[1]


class NearestNeighboursConfig(Config):
    """The number of neighbours."""

    neighbours: int = Field(3, ge=1, description="number of neighbours; all examples if fewer")


class NearestNeighbours(RegressionSolver):
    """The mean y of the examples nearest to the query."""

    name = "nearest-neighbours"
    Config = NearestNeighboursConfig

    def answer(self, examples: Examples, query: Tensor, config: NearestNeighboursConfig) -> Tensor:
        """The values (B, Q, K) at query (B, Q, D)."""
        x, y = examples.x, examples.y
        if x.shape[1] == 0:
            return query.new_zeros(query.shape[0], query.shape[1], y.shape[2])
        # Not cdist, whose expansion ‖q‖² − 2q·x + ‖x‖² loses digits and breaks ties.
        distance = (query.unsqueeze(2) - x.unsqueeze(1)).square().sum(dim=3)
        count = min(config.neighbours, x.shape[1])
        nearest = distance.topk(count, dim=2, largest=False).indices
        values = torch.gather(
            y.unsqueeze(1).expand(-1, query.shape[1], -1, -1),
            2,
            nearest.unsqueeze(3).expand(-1, -1, -1, y.shape[2]),
        )
        return values.mean(dim=2)


class Zero(LinearSolver):
    """Predicts 0."""

    name = "zero"

    def weights(self, examples: Examples, config: Config) -> Tensor:
        """Zeros (B, D, K)."""
        x = examples.x
        return x.new_zeros(x.shape[0], x.shape[2], examples.y.shape[2])
