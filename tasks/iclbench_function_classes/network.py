"""The task `relu-network`: two-layer ReLU networks."""

from __future__ import annotations

import math

from pydantic import Field
from torch import Tensor

from iclbench import Draws, Random, Shift

from .base import FunctionTask, ScaledConfig, resized, scale_shifts
from .recipes import SMOKE, paper, quick


class NetworkConfig(ScaledConfig):
    """The sizes of a prompt, and the network's."""

    examples: int = Field(100, ge=1, description="N, number of examples in the context")
    hidden: int = Field(100, ge=1, description="r, number of hidden units")


class ReluNetwork(FunctionTask[NetworkConfig]):
    """y = √(2/r) Σ_j a_j relu(w_j·x), with all weights N(0, 1) and a times `scale`: E y² = D.

    There is no closed form of the best predictor, so there is no floor.
    """

    name = "relu-network"
    version = 1
    floor_summary = "No floor: the best predictor of a random network has no closed form."
    Config = NetworkConfig
    replica_args = FunctionTask.replica_args | {"scale"}
    recipes = {"smoke": SMOKE, "quick": quick(examples=16, hidden=8), "paper": paper(101, 26, 5)}

    def class_shifts(self) -> dict[str, Shift]:
        """Other scales of the values, and other widths."""
        r, shifts = self.config.hidden, scale_shifts(self.config)
        shifts["hidden-double"] = resized(f"{2 * r} hidden units", hidden=2 * r)
        if r > 1:
            shifts["hidden-one"] = resized("1 hidden unit", hidden=1)
        return shifts

    def draw_function(self, random: Random) -> Draws:
        """w (rows, D, r) and a (rows, r, 1)."""
        c = self.config
        return {
            "w": random.normal("w", c.dim, c.hidden),
            "a": random.normal("a", c.hidden, 1),
        }

    def values(self, x: Tensor, draws: Draws) -> Tensor:
        """√(2/r) Σ_j a_j relu(w_j·x), (B, N+1, 1)."""
        size = self.config.scale * math.sqrt(2.0 / self.config.hidden)
        return size * ((x @ draws["w"]).relu() @ draws["a"])
