"""The tasks `gradient` and `gradient-steps`: gradient descent by one and several steps (D.2.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import torch
from flint import arb_mat
from pydantic import Field
from torch import Tensor

from iclbench import (
    Axis,
    Batch,
    Distance,
    Draws,
    EvaluationContext,
    FloorKind,
    Primary,
    Random,
    Signature,
    evaluate_exactly,
    map_tensors,
    to_device,
)

from .base import LeastSquaresTask
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
        last = torch.cat([w, self.tokens[:, -1:, w.shape[2] :]], dim=2)
        return self._replace(tokens=torch.cat([self.tokens[:, :-1], last], dim=1), w=w)

    def gradient(self, w: Tensor) -> Tensor:
        """(1/N) Σ xᵢ(xᵢᵀw − yᵢ) at w (B, 1, D) → (B, 1, D) (least_squares, eq. 45)."""
        error = self.x @ w.mT - self.y
        return (self.x.mT @ error).mT / self.x.shape[1]


class DescentConfig(LeastSquaresConfig):
    """The problems, their features, and the step size."""

    features: Features = Field(
        0, description="k: 0 none, 1 yx and xxᵀ of each example, 2 their sums over the examples"
    )
    step_size: float = Field(0.5, gt=0, description="η of w ← w − η gradient")


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


class GradientConfig(DescentConfig):
    """The number of steps taken with the predictions."""

    iterates: int = Field(200, ge=1, description="T, steps taken with the predictions")


class Gradient(DescentTask[GradientConfig]):
    """Predict the gradient of least squares at w₀ (least_squares, D.2.5).

    Evaluation also descends with the predictions: w_{t+1} = w_t − η · model(…, w_t), t < T, from w₀
    in the run's dtype (eq. 11).
    """

    name = "gradient"
    version = 2
    Config = GradientConfig
    errors = {
        "gradient_error": "squared",
        "weight_error": "squared",
        "query_error": "squared",
        "weight_error_by_iterate": "squared",
        "query_error_by_iterate": "squared",
    }
    floor_name = "exact gradient"
    floor_summary = (
        "No floor, but a target: T steps with the gradient computed in the run's dtype. A "
        "prediction that points to w* more directly can pass it. The row's `gradient_error` is the "
        "attainable one."
    )

    @property
    def floor_kind(self) -> FloorKind:
        """`none`: see `floor_summary`."""
        return "none"

    @property
    def primary(self) -> Primary:
        """‖w_T − w*‖² after descending with the predictions."""
        return Primary("weight_error")

    @property
    def signature(self) -> Signature:
        """See `describe_prompt`."""
        return self.describe_prompt("gradient")

    @property
    def axes(self) -> dict[str, Axis]:
        """Both curves run over the iterates t = 0…T."""
        iterates = Axis("iterate", tuple(map(float, range(self.config.iterates + 1))))
        return {"weight_error_by_iterate": iterates, "query_error_by_iterate": iterates}

    def solve(self, prompt: Descent) -> Tensor:
        """The gradient."""
        return prompt.gradient(prompt.w)

    def solve_exactly(self, x: arb_mat, y: arb_mat, w: arb_mat) -> arb_mat:
        """The gradient, D × 1."""
        return exact_gradient(x, y, w)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """gradient_error, the mean squared error over the D components, (B,)."""
        return {"gradient_error": (prediction - batch.target).square().mean(dim=(1, 2))}

    def evaluate(
        self, model: Callable[[Any], Tensor], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """gradient_error; ‖w_t − w*‖² and the query's error, for every t and for the last."""
        size = context.batch_size or len(batch.target)
        parts = []
        for start in range(0, len(batch.target), size):
            part = map_tensors(lambda t, s=start: t[s : s + size], batch.prompt)
            parts.append(self._descend(model, to_device(part, context.device)))
        first, weights = (torch.cat(results) for results in zip(*parts, strict=True))
        return self._scores(first, weights, batch)

    def _scores(self, first: Tensor, weights: Tensor, batch: Batch) -> dict[str, Tensor]:
        """The metrics of a first prediction (B, 1, D) and of all iterates (B, T + 1, D)."""
        errors = weights - batch.truth["w"]
        by_iterate = errors.square().sum(dim=2)
        at_query = (errors * batch.prompt.query.double()).sum(dim=2).square()
        return self.metrics(first, batch) | _by_iterate(by_iterate, at_query)

    def _descend(self, model: Callable[[Any], Tensor], prompt: Descent) -> tuple[Tensor, Tensor]:
        """The first prediction (B, 1, D) and all iterates (B, T + 1, D), float64 on the CPU."""
        w, visited, first = prompt.w, [prompt.w], None
        for _ in range(self.config.iterates):
            step = model(prompt.at(w))
            # The first prediction, at w₀, is the one that training asks for.
            first = step if first is None else first
            w = w - self.config.step_size * step
            visited.append(w)
        iterates = torch.cat(visited, dim=1).to("cpu", torch.float64)
        return cast(Tensor, first).to("cpu", torch.float64), iterates

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """See `Task`; the iterates are measured against w*, at the query against w*ᵀx_query."""
        w, count = batch.truth["w"], self.config.iterates + 1
        value = (w * batch.prompt.query.double()).sum(dim=2)
        by_iterate = distance(w).square().sum(dim=2).expand(-1, count)
        at_query = distance(value).square().expand(-1, count)
        return super().errors_at(batch, distance) | _by_iterate(by_iterate, at_query)

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """A target: gradient descent in the prompt's dtype; of gradient_error the attainable."""
        _, weights = self._descend(self.solve, batch.prompt)
        first = self.exact_answer(batch).to(batch.prompt.w.dtype).double()
        return self._scores(first, weights, batch)

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """Gradients of zero: the weights stay at w₀."""
        weights = batch.prompt.w.double().expand(-1, self.config.iterates + 1, -1)
        return self._scores(torch.zeros_like(batch.target), weights, batch)


class StepsConfig(DescentConfig):
    """The number of steps."""

    steps: int = Field(4, ge=1, description="k, gradient steps from w₀")


class GradientSteps(DescentTask[StepsConfig]):
    """Predict w_k, k steps of gradient descent from w₀, with the step size of the configuration."""

    name = "gradient-steps"
    version = 2
    Config = StepsConfig
    floor_summary = "The k gradient steps on the rounded prompt, computed exactly."

    @property
    def floor_kind(self) -> FloorKind:
        """`exact`: the rounded prompt determines the answer."""
        return "exact"

    @property
    def signature(self) -> Signature:
        """See `describe_prompt`."""
        return self.describe_prompt("weights")

    def solve(self, prompt: Descent) -> Tensor:
        """w_k."""
        w = prompt.w
        for _ in range(self.config.steps):
            w = w - self.config.step_size * prompt.gradient(w)
        return w

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, the mean over the D components of w_k, (B,)."""
        return {"squared_error": (prediction - batch.target).square().mean(dim=(1, 2))}

    def solve_exactly(self, x: arb_mat, y: arb_mat, w: arb_mat) -> arb_mat:
        """w_k, D × 1."""
        for _ in range(self.config.steps):
            w = w - exact_gradient(x, y, w) * self.config.step_size
        return w


def exact_gradient(x: arb_mat, y: arb_mat, w: arb_mat) -> arb_mat:
    """The gradient of a prompt in ball arithmetic, D × 1, of x (N, D), y (N, 1), w (D, 1)."""
    return x.transpose() * (x * w - y) / x.nrows()


def _by_iterate(weights: Tensor, at_query: Tensor) -> dict[str, Tensor]:
    """Both curves, (B, T + 1), and their last values."""
    return {
        "weight_error": weights[:, -1],
        "query_error": at_query[:, -1],
        "weight_error_by_iterate": weights,
        "query_error_by_iterate": at_query,
    }
