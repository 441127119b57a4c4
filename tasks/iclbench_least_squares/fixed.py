"""The task `least-squares`: a fixed number of examples, one query (D.2.2)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Distance,
    Draws,
    Primary,
    Regression,
    Signature,
    added_later,
    exact_matmul,
)

from .base import LeastSquaresTask, error_at_query
from .problems import LeastSquaresConfig, problems_from


class FixedConfig(LeastSquaresConfig):
    """The distribution of the problems, the target and the loss."""

    target: Literal["query", "weights"] = Field(
        "query", description="what to predict: the value of the query, or the weights w*"
    )
    loss: Literal["mean", "log"] = added_later(
        "mean",
        description="training loss: the squared error, or its logarithm, which weighs all orders "
        "of magnitude equally",
    )


class LeastSquares(LeastSquaresTask[FixedConfig]):
    """Predict w*ᵀx_query, or w*, from (xᵢ, yᵢ), i ≤ N; x, w* ~ N(0, I) (Liu et al., D.2.2).

    Tokens are (xᵢ, yᵢ) and last (x_query, 0), so S = N + 1 and d = D + 1; the answer is read at the
    last token. Noise affects y and not the target.
    """

    name = "least-squares"
    version = 2
    Config = FixedConfig
    training_only = frozenset({"loss"})
    errors = {"squared_error": "squared", "weight_error": "squared"}

    @property
    def primary(self) -> Primary:
        """The squared error at the query or of the weights, depending on `target`."""
        return Primary("squared_error" if self.asks_query else "weight_error")

    @property
    def asks_query(self) -> bool:
        """Whether the target is the query's value, and not the weights."""
        return self.config.target == "query"

    @property
    def signature(self) -> Signature:
        """S = N + 1 tokens of width D + 1, read at the last."""
        c = self.config
        return Signature(
            prompt=Regression,
            target=c.target,
            length=c.examples + 1,
            input_width=c.dim + 1,
            output_width=1 if self.asks_query else c.dim,
            readout=(c.examples,),
            shapes=self.shapes(),
        )

    @property
    def undetermined_shifts(self) -> frozenset[str]:
        """`signs` for some sizes, and `half-subspace` if w* is the target.

        Inputs in half of the dimensions determine the values there, but not all of w*.
        """
        free = frozenset() if self.asks_query else frozenset({"half-subspace"})
        return self.few_signs | free

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, N+1, D+1) with (x_query, 0) last; the target is without noise."""
        problems = problems_from(self.config, draws)
        x, y = problems.x, problems.y
        prompt = Regression(problems.rows(), x[:, :-1], y, x[:, -1:])
        # `clean` has no noise: the target is w*ᵀx, not an observation of it.
        target = problems.clean[:, -1:] if self.asks_query else problems.w.mT
        return Batch(prompt, target, {"w": problems.w})

    def answer(self, batch: Batch) -> Tensor:
        """w*ᵀx_query of the rounded query, an exact product; or w* itself."""
        if self.asks_query:
            # Of the rounded query, so that rounding the prompt does not count as a model's error.
            return exact_matmul(batch.prompt.query, batch.truth["w"])
        return batch.target

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean squared error of each prompt, or its logarithm, (B,)."""
        error = super().loss(prediction, target)
        # Errors below ε² are rounding.
        floor = torch.finfo(error.dtype).eps ** 2
        return error if self.config.loss == "mean" else (error + floor).log()

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error at the query; for the weights also weight_error, ‖ŵ − w*‖²."""
        error = prediction - batch.target
        if self.asks_query:
            return {"squared_error": error[:, 0, 0].square()}
        # The prompt is in the run's dtype; a product in float64 adds no rounding error.
        at_query = (batch.prompt.query.double() * error).sum(dim=2)
        return {
            "weight_error": error.square().sum(dim=(1, 2)),
            "squared_error": at_query[:, 0].square(),
        }

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """See `Task`; for the weights, the error at the query is measured against w*ᵀx_query."""
        errors = super().errors_at(batch, distance)
        return (
            errors
            if self.asks_query
            else errors | {"squared_error": error_at_query(batch, distance)}
        )

    def exact_answer(self, batch: Batch) -> Tensor:
        """Least squares on the rounded prompt, of least norm where N < D; see `posterior_mean`."""
        prompt = batch.prompt
        if self.asks_query:
            # Rounded once, after the product: rounding w first would add an error of its own.
            return self.posterior_mean(prompt.x, prompt.y, prompt.query)
        return self.posterior_mean(prompt.x, prompt.y).mT
