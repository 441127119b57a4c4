"""The task `categorical`: kernels around anchors (categorical, Appendix E)."""

from __future__ import annotations

import math

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Draws, Random

from .base import CategoricalConfig, CategoricalTask, chosen_classes

#: Value of an anchor's kernel at the nearest other anchor.
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
    """f(x) = λ Σₘ w_{c(m)} exp(−σₘ²‖x − x̃(m)‖), with anchors x̃ ~ N(0, I) of different categories.

    σₘ makes the kernel 0.1 at the nearest other anchor. The norm is not squared, as printed
    (Appendix E). The paper does not give the distribution of x.
    """

    name = "categorical"
    version = 1
    Config = AnchorsConfig
    stream = "categorical evaluation"

    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, P, d')."""
        anchors = draws["shape"]
        between = _distances(anchors, anchors)
        # An anchor is not its own nearest neighbour.
        between.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        # σₘ²: with the norm not squared, exp(−σₘ² · nearest) = 0.1.
        rate = -math.log(AT_NEAREST) / between.amin(dim=2)
        weights = torch.exp(-rate.unsqueeze(1) * _distances(x, anchors))
        classes = chosen_classes(draws["order"], self.config.anchors)
        values: Tensor = self.config.height * (weights @ embedding[classes])
        return values

    def draw(self, random: Random) -> Draws:
        """x, choice, order, and shape, the anchors (n, M, d); see `CategoricalTask`."""
        c = self.config
        x = random.normal("x", c.points, c.dim)
        anchors = random.normal("anchors", c.anchors, c.dim)
        # Drawn even for spread=null, so that the other draws do not depend on the option.
        nearby = random.uniform("place", c.points)
        if c.spread is not None:
            index = (nearby * c.anchors).long().unsqueeze(2).expand_as(x)
            # The paper leaves the distribution of x open, hence this option.
            x = anchors.gather(1, index) + c.spread * x
        return {"x": x, "shape": anchors, **self.draw_categories(random)}


def _distances(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖ of every pair, (n, A, B), from exact differences."""
    # Not ‖a‖² − 2ab + ‖b‖², which cancels for close points.
    distances: Tensor = torch.linalg.vector_norm(a.unsqueeze(2) - b.unsqueeze(1), dim=3)
    return distances
