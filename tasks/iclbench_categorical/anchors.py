"""The task `categorical`: kernels around anchors (Wang et al., Appendix E)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Draws, Random, Shift, added_later

from .base import CategoricalConfig, CategoricalTask, chosen_classes
from .shifts import kernel_shifts

Kernel = Literal["exponential", "gaussian", "rational"]

#: Value of an anchor's kernel at the nearest other anchor.
AT_NEAREST = 0.1


class AnchorsConfig(CategoricalConfig):
    """The function of each context."""

    anchors: int = Field(5, ge=2, description="M, number of anchors, and of classes, in a context")
    height: float = Field(10.0, gt=0, description="λ, the factor on f")
    spread: float | None = Field(
        None, ge=0, description="standard deviation of x around a random anchor; null: x ~ N(0, I)"
    )

    kernel: Kernel = added_later(
        "exponential",
        description="kernel k(r), which is 0.1 at the nearest other anchor; the paper's is "
        "exponential in the distance",
    )

    @model_validator(mode="after")
    def _has_enough_classes(self) -> AnchorsConfig:
        if self.anchors > self.classes:
            raise ValueError(f"anchors={self.anchors} exceeds classes={self.classes}")
        return self


class Anchors(CategoricalTask[AnchorsConfig]):
    """f(x) = λ Σₘ w_{c(m)} exp(−σₘ²‖x − x̃(m)‖), with anchors x̃ ~ N(0, I) of different classes.

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
        weights = self._kernel(_distances(x, anchors), between.amin(dim=2).unsqueeze(1))
        classes = chosen_classes(draws["order"], self.config.anchors)
        values: Tensor = self.config.height * (weights @ embedding[classes])
        return values

    def _kernel(self, distances: Tensor, nearest: Tensor) -> Tensor:
        """k (n, P, M) at distances from the anchors, 0.1 at `nearest` (n, 1, M)."""
        if self.config.kernel == "exponential":
            # σₘ²: with the norm not squared, exp(−σₘ² · nearest) = 0.1.
            return torch.exp(math.log(AT_NEAREST) / nearest * distances)
        squares = (distances / nearest).square()
        if self.config.kernel == "gaussian":
            return torch.exp(math.log(AT_NEAREST) * squares)
        return 1.0 / (1.0 + (1.0 / AT_NEAREST - 1.0) * squares)

    @property
    def shifts(self) -> dict[str, Shift]:
        """Noisy labels, inputs of other sizes, and other kernels."""
        return {**super().shifts, **kernel_shifts(Kernel, self.config.kernel)}

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
        return {"x": x, "shape": anchors, **self.draw_classes(random)}


def _distances(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖ of every pair, (n, A, B), from exact differences."""
    # Not ‖a‖² − 2ab + ‖b‖², which cancels for close points.
    distances: Tensor = torch.linalg.vector_norm(a.unsqueeze(2) - b.unsqueeze(1), dim=3)
    return distances
