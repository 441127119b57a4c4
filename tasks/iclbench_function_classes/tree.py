"""The task `decision-tree`: trees that ask for the signs of coordinates."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Draws, Random, Shift

from .base import FunctionTask, ScaledConfig, resized, scale_shifts
from .recipes import SMOKE, paper, quick


class TreeConfig(ScaledConfig):
    """The sizes of a prompt, and the tree's."""

    examples: int = Field(100, ge=1, description="N, number of examples in the context")
    depth: int = Field(
        4, ge=1, le=16, description="depth of the tree: number of decisions from the root to a leaf"
    )


class DecisionTree(FunctionTask[TreeConfig]):
    """y is the leaf of x in a full tree: each node goes right if its coordinate of x is positive.

    Coordinates are uniform, leaves N(0, scale²): E y² = 1 at scale 1. There is no closed form of
    the best predictor, so there is no floor.
    """

    name = "decision-tree"
    version = 1
    floor_summary = "No floor: the best predictor of a random tree has no closed form."
    Config = TreeConfig
    replica_args = FunctionTask.replica_args | {"scale"}
    recipes = {"smoke": SMOKE, "quick": quick(examples=16, depth=2), "paper": paper(101, 26, 5)}
    # The tree sees signs alone.
    grows = False

    def class_shifts(self) -> dict[str, Shift]:
        """Other scales of the values, and other depths."""
        depth, shifts = self.config.depth, scale_shifts(self.config)
        if depth > 1:
            shifts["shallower"] = resized(f"trees of depth {depth - 1}", depth=depth - 1)
        if depth < 16:
            shifts["deeper"] = resized(f"trees of depth {depth + 1}", depth=depth + 1)
        return shifts

    def draw_function(self, random: Random) -> Draws:
        """The nodes' coordinates (rows, 2^depth − 1) and the leaves (rows, 2^depth)."""
        leaves = 2**self.config.depth
        return {
            "coordinates": random.integers("coordinates", self.config.dim, leaves - 1),
            "leaves": random.normal("leaves", leaves),
        }

    def values(self, x: Tensor, draws: Draws) -> Tensor:
        """The leaf of every input, (B, N+1, 1)."""
        # Node i's children are 2i + 1 and 2i + 2, so that leaves follow the 2^depth − 1 nodes.
        node = torch.zeros(x.shape[:2], dtype=torch.int64, device=x.device)
        for _ in range(self.config.depth):
            coordinate = draws["coordinates"].gather(1, node)
            right = x.gather(2, coordinate.unsqueeze(2)).squeeze(2) > 0
            node = 2 * node + 1 + right
        leaf = node - (2**self.config.depth - 1)
        return self.config.scale * draws["leaves"].gather(1, leaf).unsqueeze(2)
