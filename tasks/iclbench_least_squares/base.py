"""What the least-squares tasks share: their problems, loss and recipes."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from iclbench import (
    Batch,
    Distance,
    Draws,
    FloorKind,
    Random,
    Shift,
    Task,
    exact_least_squares,
    value_scale,
)

from .problems import LeastSquaresConfig, draw_problems
from .recipes import GAUSS_NEWTON, LBFGS, PAPER, PRECISION, SOAP
from .shifts import regression_shifts

ConfigT = TypeVar("ConfigT", bound=LeastSquaresConfig)


class LeastSquaresTask(Task[ConfigT]):
    """A task on regression problems; the tasks draw the same ones and ask for different things."""

    recipes = {
        "paper": PAPER,
        "precision": PRECISION,
        "soap": SOAP,
        "gauss-newton": GAUSS_NEWTON,
        "lbfgs": LBFGS,
    }
    replica_args = frozenset({"noise", "condition_number"})
    stream = "least squares evaluation"
    unrounded = frozenset({"noise"})
    floor_summary = (
        "Least squares on the rounded prompt, solved exactly. With noise, or with fewer examples "
        "than dimensions, it is the Bayes predictor: the posterior mean of w* ~ N(0, I)."
    )

    @property
    def floor_kind(self) -> FloorKind:
        """`exact` if the examples determine w*, without noise and with N ≥ D; else `bayes`."""
        c = self.config
        # With N ≥ D Gaussian examples, noiseless outputs determine w*; otherwise the prior decides.
        return "exact" if not c.noise and c.examples >= c.dim else "bayes"

    @property
    def shifts(self) -> dict[str, Shift]:
        """Those of Garg et al. (2022), conditioning, numbers of examples, other inputs."""
        shifts = regression_shifts(self.config)
        # With noise, the prior always makes the best answer unique.
        left_out = frozenset() if self.config.noise else self.undetermined_shifts
        return {name: shift for name, shift in shifts.items() if name not in left_out}

    @property
    def undetermined_shifts(self) -> frozenset[str]:
        """Shifts under which examples without noise are often too dependent for a best answer.

        The exact solution then is undefined, or depends on nothing but how the prompt was rounded.
        """
        return frozenset()

    @property
    def few_signs(self) -> frozenset[str]:
        """`signs` if examples of ±1 are dependent in more than one prompt in 10,000."""
        fewer, more = sorted((self.config.examples, self.config.dim))
        # Most often two rows or columns agree, or differ in every sign.
        return frozenset({"signs"} if fewer * (fewer - 1) * 2.0**-more > 1e-4 else ())

    def posterior_mean(self, x: Tensor, y: Tensor, query: Tensor | None = None) -> Tensor:
        """E[w* | x, y] (B, D, 1), or its value at query (B, Q, D), rounded once; w* ~ N(0, f²I).

        That is ridge regression with λ = σ²/f², and without noise least squares of least norm. The
        factor f is 1, except under a shift of the values' scale.
        """
        # In float64 in every run: σ is the configuration's and is not rounded with the prompt.
        noise = self.config.noise / value_scale(self.shift)
        variances = x.new_full((len(x),), noise, dtype=torch.float64).square()
        return exact_least_squares(x, y, query=query, ridge=variances)

    def reference(self, batch: Batch) -> Tensor | None:
        """The posterior mean: the same formula as the exact answer."""
        return self.exact_answer(batch)

    def draw(self, random: Random) -> Draws:
        """x and w, with the condition number, and noise."""
        return draw_problems(self.config, random)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of x, y and query, for a signature."""
        c = self.config
        return {"x": (c.examples, c.dim), "y": (c.examples, 1), "query": (1, c.dim)}

    def with_query(self, prompt: Any, query: Tensor) -> Any:
        """The prompt with another query (B, 1, D), also in the last token."""
        return prompt._replace(tokens=with_last(prompt.tokens, query), query=query)

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean squared error of each prompt, (B,)."""
        # Per prompt, because the harness averages over a batch or a part of it.
        return mse_loss(prediction, target, reduction="none").mean(dim=(1, 2))


def with_last(tokens: Tensor, vector: Tensor) -> Tensor:
    """Tokens whose last one begins with another vector (B, 1, D); the features after it stay."""
    last = torch.cat([vector, tokens[:, -1:, vector.shape[2] :]], dim=2)
    return torch.cat([tokens[:, :-1], last], dim=1)


def error_at_query(batch: Batch, distance: Distance) -> Tensor:
    """The squared error at the query, (B,), at a distance from w*ᵀx_query; the target is w*."""
    value = (batch.prompt.query.double() * batch.target).sum(dim=2)
    return distance(value)[:, 0].square()
