"""What `gradient` and `gradient-steps` share: problems, and the weights that a step starts from."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

import torch
from flint import arb_mat
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Draws,
    Random,
    Signature,
    evaluate_exactly,
)

from .base import LeastSquaresTask, with_last
from .features import Features, feature_tokens
from .problems import LeastSquaresConfig, problems_from
from .recipes import WIDE


class Descent(NamedTuple):
    """A regression problem, and weights w at which a gradient is asked for.

    tokens (B, N+1, d); x (B, N, D); y (B, N, 1); query (B, 1, D), in no token; w (B, 1, D).
    """

    tokens: Tensor
    x: Tensor
    y: Tensor
    query: Tensor
    w: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """tokens (B, N+1, d) and no ids."""
        ids = torch.zeros(self.tokens.shape[:2], dtype=torch.int64, device=self.tokens.device)
        return self.tokens, ids

    def at(self, w: Tensor) -> Descent:
        """The same problem at other weights (B, 1, D)."""
        return self._replace(tokens=with_last(self.tokens, w), w=w)

    def gradient(self, w: Tensor) -> Tensor:
        """(1/N) Σ xᵢ(xᵢᵀw − yᵢ) at w (B, 1, D) → (B, 1, D) (Liu et al., eq. 45)."""
        error = self.x @ w.mT - self.y
        return (self.x.mT @ error).mT / self.x.shape[1]


class DescentConfig(LeastSquaresConfig):
    """The problems, their features, and the step size."""

    features: Features = Field(
        0,
        description="features in the prompt: 0, none; 1, yx and xxᵀ of each example; 2, their sums "
        "over the examples",
    )
    step_size: float = Field(0.5, gt=0, description="η, step size of w ← w − η · gradient")


ConfigT = TypeVar("ConfigT", bound=DescentConfig)


class DescentTask(LeastSquaresTask[ConfigT]):
    """Tokens (xᵢ, yᵢ, features), last (w₀, 0, …): S = N + 1, d = D² + 2D + 1; w₀ ~ N(0, I)."""

    replica_args = LeastSquaresTask.replica_args | {"step_size"}
    recipes = {**LeastSquaresTask.recipes, "paper": WIDE}

    def draw(self, random: Random) -> Draws:
        """The problems, and start, the weights w₀ (B, D, 1)."""
        return {**super().draw(random), "start": random.normal("start", self.config.dim, 1)}

    def arrange(self, draws: Draws) -> Batch:
        """Tokens (B, N+1, d) with (w₀, 0, …) last; truth holds w* (B, 1, D)."""
        problems = problems_from(self.config, draws)
        x, y, w = problems.x[:, :-1], problems.y, draws["start"].mT
        tokens = feature_tokens(x, y, self.config.features)
        last = torch.zeros_like(tokens[:, :1])
        if self.config.features == 2:
            # The sums over the examples are the same in all tokens, the last included (D.2.5).
            last = tokens[:, :1].clone()
            last[:, :, : self.config.dim + 1] = 0.0
        prompt = Descent(torch.cat([tokens, last], dim=1), x, y, problems.x[:, -1:], w).at(w)
        return Batch(prompt, self.solve(prompt), {"w": problems.w.mT})

    @abstractmethod
    def solve(self, prompt: Descent) -> Tensor:
        """What the task asks for, (B, 1, D), in the prompt's dtype."""

    @abstractmethod
    def solve_exactly(self, x: arb_mat, y: arb_mat, w: arb_mat) -> arb_mat:
        """The same for one prompt in ball arithmetic, D × 1, of x (N, D), y (N, 1), w (D, 1)."""

    def answer(self, batch: Batch) -> Tensor:
        """The exact answer to the rounded prompt, rounded once."""
        prompt = batch.prompt
        return evaluate_exactly(self.solve_exactly, prompt.x, prompt.y, prompt.w.mT).mT

    def exact_answer(self, batch: Batch) -> Tensor:
        """The target: the rounded prompt determines it."""
        return batch.target

    def with_query(self, prompt: Any, query: Tensor) -> None:
        """None: no token shows the query."""

    def describe_prompt(self, target: Any) -> Signature:
        """S = N + 1 tokens of width D² + 2D + 1, read at the last."""
        c = self.config
        return Signature(
            prompt=Descent,
            target=target,
            length=c.examples + 1,
            input_width=c.dim**2 + 2 * c.dim + 1,
            output_width=c.dim,
            readout=(c.examples,),
            shapes={**self.shapes(), "w": (1, c.dim)},
        )


def exact_gradient(x: arb_mat, y: arb_mat, w: arb_mat) -> arb_mat:
    """The gradient of a prompt in ball arithmetic, D × 1, of x (N, D), y (N, 1), w (D, 1)."""
    return x.transpose() * (x * w - y) / x.nrows()
