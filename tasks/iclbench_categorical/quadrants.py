"""The task `categorical-quadrants`: a class for each quadrant (Wang et al., Appendix F)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from iclbench import Draws, Random

from .base import CategoricalConfig, CategoricalTask, chosen_classes


class QuadrantsConfig(CategoricalConfig):
    """The plane, 20 classes, 100 examples."""

    dim: Literal[2] = Field(2, description="d, dimension of x; quadrants exist only in the plane")
    classes: int = Field(20, ge=4, description="C, number of classes")
    examples: int = Field(100, ge=1, description="N, examples in a context")


class Quadrants(CategoricalTask[QuadrantsConfig]):
    """f(x) = w_c of the class c assigned to x's quadrant; x uniform on [−1, 1]².

    A context's four classes are different.
    """

    name = "categorical-quadrants"
    version = 1
    Config = QuadrantsConfig
    stream = "categorical quadrants evaluation"

    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, P, d')."""
        # 0 to 3, one bit per sign.
        quadrant = (x[..., 0] < 0).long() + 2 * (x[..., 1] < 0).long()
        return embedding[chosen_classes(draws["order"], 4).gather(1, quadrant)]

    def draw(self, random: Random) -> Draws:
        """x, choice, order, and an empty shape; see `CategoricalTask`."""
        x = 2.0 * random.uniform("x", self.config.points, 2) - 1.0
        # The function has no parameters beyond its classes.
        return {"x": x, "shape": x[:, 0, :0], **self.draw_classes(random)}
