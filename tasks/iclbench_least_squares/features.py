"""The task `least-squares-features`: tokens with the features of gradient descent (D.2.4)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Batch, Distance, Draws, Primary, Regression, Signature

from .base import LeastSquaresTask, error_at_query
from .problems import LeastSquaresConfig, problems_from
from .recipes import WIDE

Features = Literal[0, 1, 2]


class FeaturesConfig(LeastSquaresConfig):
    """The features in the tokens."""

    features: Features = Field(
        1,
        description="features in the prompt: 0, none; 1, yx and xxᵀ of each example; 2, their sums "
        "over the examples",
    )


def feature_tokens(x: Tensor, y: Tensor, features: int) -> Tensor:
    """(xᵢ, yᵢ, yᵢxᵢ, flt(xᵢxᵢᵀ)), (B, N, D²+2D+1), by `features` (Liu et al., D.2.4)."""
    weighted = y * x
    # Row-major: entry Di + j is xᵢxⱼ. The matrix is symmetric, so the order is a convention.
    squares = (x.unsqueeze(3) * x.unsqueeze(2)).flatten(2)
    formed = torch.cat([weighted, squares], dim=2)
    if features == 0:
        # Tokens have the same width for every k, so results differ by the features only.
        formed = torch.zeros_like(formed)
    if features == 2:
        # Every token shows the sums over all examples, also over later ones, as in the paper.
        formed = formed.sum(dim=1, keepdim=True).expand_as(formed)
    return torch.cat([x, y, formed], dim=2)


class LeastSquaresFeatures(LeastSquaresTask[FeaturesConfig]):
    """Predict w* at the last example (Liu et al., D.2.4).

    Tokens (xᵢ, yᵢ, features), so S = N and d = D² + 2D + 1. No token shows the prompt's query:
    `squared_error` is measured there.
    """

    name = "least-squares-features"
    version = 1
    Config = FeaturesConfig
    recipes = {**LeastSquaresTask.recipes, "paper": WIDE}
    errors = {"squared_error": "squared", "weight_error": "squared"}

    @property
    def primary(self) -> Primary:
        """‖ŵ − w*‖²."""
        return Primary("weight_error")

    @property
    def signature(self) -> Signature:
        """S = N tokens of width D² + 2D + 1, read at the last."""
        c = self.config
        return Signature(
            prompt=Regression,
            target="weights",
            length=c.examples,
            input_width=c.dim**2 + 2 * c.dim + 1,
            output_width=c.dim,
            readout=(c.examples - 1,),
            shapes=self.shapes(),
        )

    @property
    def undetermined_shifts(self) -> frozenset[str]:
        """`half-subspace`, where inputs do not determine all of w*, and `signs` for some sizes."""
        return self.few_signs | {"half-subspace"}

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, N, D²+2D+1); the target is w*."""
        problems = problems_from(self.config, draws)
        # The last input is drawn for `squared_error` only.
        x, y = problems.x[:, :-1], problems.y
        tokens = feature_tokens(x, y, self.config.features)
        return Batch(Regression(tokens, x, y, problems.x[:, -1:]), problems.w.mT)

    def with_query(self, prompt: Regression, query: Tensor) -> None:
        """None: no token shows the query."""

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """weight_error, ‖ŵ − w*‖², and squared_error at the query; both (B,)."""
        # ŵᵀx − w*ᵀx = (ŵ − w*)ᵀx: no answer at the query is needed.
        error = prediction - batch.target
        at_query = (batch.prompt.query.double() * error).sum(dim=2)
        return {
            "weight_error": error.square().sum(dim=(1, 2)),
            "squared_error": at_query[:, 0].square(),
        }

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """See `Task`; the error at the query is measured against w*ᵀx_query."""
        return super().errors_at(batch, distance) | {
            "squared_error": error_at_query(batch, distance)
        }

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares on the rounded prompt, of least norm where N < D; see `posterior_mean`."""
        # Not w*: with noise, or with N < D, the prompt does not determine it.
        return self.posterior_mean(batch.prompt.x, batch.prompt.y).mT
