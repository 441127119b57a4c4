"""The task `categorical`: kernels around anchors (categorical, Appendix E)."""

from __future__ import annotations

import math

import numpy as np
import torch
from pydantic import Field, model_validator
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

#: The kernel's value at the nearest other anchor.
AT_NEAREST = 0.1


class AnchorsConfig(CategoricalConfig):
    """The function of each context."""

    anchors: int = Field(5, ge=2, description="M, anchors and categories of a context")
    height: float = Field(10.0, gt=0, description="λ, the factor on f")
    spread: float | None = Field(
        None, ge=0, description="x around a random anchor with this deviation; null: x ~ N(0, I)"
    )

    @model_validator(mode="after")
    def _has_enough_categories(self) -> AnchorsConfig:
        if self.anchors > self.classes:
            raise ValueError(f"{self.anchors} anchors need as many classes")
        return self


class Anchors(CategoricalTask[AnchorsConfig]):
    """f(x) = λ Σₘ w_{c(m)} exp(−σₘ²‖x − x̃(m)‖), with anchors x̃ ~ N(0, I), of different categories.

    σₘ is such that the kernel is 0.1 at the nearest other anchor; the norm is not squared, as
    printed (Appendix E). The paper does not state the distribution of x.
    """

    name = "categorical"
    version = 1
    Config = AnchorsConfig
    stream = "categorical evaluation"

    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, N + Q, d')."""
        anchors = draws.shape[:, :, : self.config.dim]
        between = _distances(anchors, anchors)
        between.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        rate = -math.log(AT_NEAREST) / between.amin(dim=2)
        weights = torch.exp(-rate.unsqueeze(1) * _distances(x, anchors))
        found: Tensor = self.config.height * (
            weights @ embedding[chosen_classes(draws.order, self.config.anchors)]
        )
        return found

    def _placed(self, x: Tensor, anchors: Tensor, choice: Tensor) -> Tensor:
        """x itself, or around anchors chosen by uniform draws (n, N + Q)."""
        if self.config.spread is None:
            return x
        index = (choice * self.config.anchors).long().unsqueeze(2).expand_as(x)
        return anchors.gather(1, index) + self.config.spread * x

    def draw(self, streams: Streams) -> Draws:
        """See `ClassificationTask.draw`; shape holds the anchors (n, M, d)."""
        c = self.config
        points = c.examples + c.queries
        x, anchors = streams.normal(points, c.dim), streams.normal(c.anchors, c.dim)
        place = streams.uniform(points)
        choice, order = standard_draws(c, streams)
        return Draws(self._placed(x, anchors, place), choice, order, anchors)

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """x and shape, the anchors, standard normal; choice and order, uniform."""
        c = self.config
        points = c.examples + c.queries
        x = philox(self.stream, "x", seed).standard_normal((n, points, c.dim))
        anchors = philox(self.stream, "anchors", seed).standard_normal((n, c.anchors, c.dim))
        place = philox(self.stream, "place", seed).uniform(size=(n, points))
        placed = self._placed(*(torch.from_numpy(v) for v in (x, anchors, place)))
        common = standard_evaluation_draws(self.stream, c, n, seed)
        return {"x": placed.numpy(), "shape": anchors, **common}


def _distances(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖ of every pair, (n, A, B), from exact differences."""
    found: Tensor = torch.linalg.vector_norm(a.unsqueeze(2) - b.unsqueeze(1), dim=3)
    return found
