"""Baselines: chance, which ignores the prompt, and two simple estimators."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from iclbench import Config, Signature, Solver

from .solver import Examples, LinearSolver, RegressionSolver
from .systems import supports_systems


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
        # The first prefix has no examples; like the linear solvers, the answer is 0.
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


class ConstantConfig(Config):
    """The value, which depends on the task: its mean target is the best."""

    value: float = Field(description="the constant, for every component of every prediction")


class Constant(Solver):
    """Predicts one number everywhere."""

    name = "constant"
    Config: ClassVar[type[Config]] = ConstantConfig
    chance = True

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs a task that asks for real numbers."""
        if signature.target in {"class", "token"}:
            return f"it answers real numbers, not {signature.target}"
        return supports_systems(signature) if signature.varies else None

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters."""
        return _ConstantModule(signature, self.value(config))

    def value(self, config: Any) -> float:
        """The prediction."""
        return float(config.value)


class Zero(Constant):
    """Predicts 0."""

    name = "zero"
    Config = Config

    def value(self, config: Any) -> float:
        """0."""
        return 0.0


class Uniform(Solver):
    """Every class, or every token of a vocabulary, is equally probable."""

    name = "uniform"
    chance = True

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs a task that asks for a class or a token."""
        if signature.target in {"class", "token"}:
            return None
        return f"it answers class and token, not {signature.target}"

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters that predicts log-probabilities."""
        return _ConstantModule(signature, -math.log(signature.output_width))


class _ConstantModule(nn.Module):
    def __init__(self, signature: Signature, value: float) -> None:
        super().__init__()
        self.signature, self.value = signature, value
        self.dtype = torch.get_default_dtype()

    def forward(self, prompt: Any) -> Tensor:
        """The prediction (B, P, W); W is the prompt's own where sizes vary."""
        real, _ = prompt.sequence()
        s = self.signature
        width = prompt.x0.shape[1] if s.varies else s.output_width
        shape = (len(real), len(s.readout), width)
        # Ids have no dtype: among them, it is that in which the model was built.
        dtype = real.dtype if real.shape[2] else self.dtype
        return torch.full(shape, self.value, dtype=dtype, device=real.device)
