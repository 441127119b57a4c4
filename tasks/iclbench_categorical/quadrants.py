"""The task `categorical-quadrants`: a category for each quadrant (categorical, Appendix F)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from iclbench import Streams, philox

from .base import (
    CategoricalConfig,
    CategoricalTask,
    Draws,
    chosen_classes,
    standard_draws,
    standard_evaluation_draws,
)


class QuadrantsConfig(CategoricalConfig):
    """The plane, 20 categories, 100 examples."""

    dim: Literal[2] = Field(2, description="d; quadrants are the plane's")
    classes: int = Field(20, ge=4, description="C, number of categories")
    examples: int = Field(100, ge=1, description="N, examples in a context")


class Quadrants(CategoricalTask[QuadrantsConfig]):
    """f(x) = w_c of the category c of x's quadrant; x uniform on [−1, 1]².

    A context's four categories are different.
    """

    name = "categorical-quadrants"
    version = 1
    Config = QuadrantsConfig
    stream = "categorical quadrants evaluation"

    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, N + Q, d')."""
        quadrant = (x[..., 0] < 0).long() + 2 * (x[..., 1] < 0).long()
        return embedding[chosen_classes(draws.order, 4).gather(1, quadrant)]

    def draw(self, streams: Streams) -> Draws:
        """See `ClassificationTask.draw`."""
        c = self.config
        x = streams.uniform(c.examples + c.queries, 2)
        choice, order = standard_draws(c, streams)
        return Draws(2.0 * x - 1.0, choice, order, order[:, :0])

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """x, choice and order, uniform."""
        points = self.config.examples + self.config.queries
        x = philox(self.stream, "x", seed).uniform(-1.0, 1.0, size=(n, points, 2))
        common = standard_evaluation_draws(self.stream, self.config, n, seed)
        return {"x": x, "shape": np.zeros((n, 0)), **common}
