"""The tasks `gradient` and `gradient-steps`: one step of gradient descent, and several (D.2.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Axis,
    Batch,
    EvaluationContext,
    Primary,
    Signature,
    Streams,
    map_tensors,
    philox,
    to_device,
)

from .base import LeastSquaresTask
from .features import Features, feature_tokens
from .problems import LeastSquaresConfig, Problems
from .recipes import WIDE


class Descent(NamedTuple):
    """A regression problem and the weights at which something is asked.

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
        residual = self.x @ w.mT - self.y
        return (self.x.mT @ residual).mT / self.x.shape[1]


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

    def problems(self, streams: Streams) -> Problems:
        """Problems for training, with the weights at which they are asked."""
        drawn = super().problems(streams)
        return drawn._replace(start=streams.normal(self.config.dim, 1))

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """Those of least squares, and start, standard normal."""
        shape = (n, self.config.dim, 1)
        start = philox("least squares evaluation", "start", seed).standard_normal(shape)
        return {**super().evaluation_draws(n, seed), "start": start}

    def evaluation_problems(self, n: int, seed: int, dtype: torch.dtype) -> Problems:
        """n problems in float64, their independent inputs, w₀ too, rounded to `dtype`."""
        start = torch.from_numpy(self.evaluation_draws(n, seed)["start"]).to(dtype).double()
        return super().evaluation_problems(n, seed, dtype)._replace(start=start)

    def arrange(self, problems: Problems, dtype: torch.dtype) -> Batch:
        """Features and answer are computed in the problems' own dtype; truth holds w* (B, 1, D)."""
        x, y, w = problems.x[:, :-1], problems.y, cast(Tensor, problems.start).mT
        tokens = feature_tokens(x, y, self.config.features)
        last = torch.zeros_like(tokens[:, :1])
        if self.config.features == 2:
            last = tokens[:, :1].clone()
            last[:, :, : self.config.dim + 1] = 0.0
        prompt = Descent(torch.cat([tokens, last], dim=1), x, y, problems.x[:, -1:], w).at(w)
        answer = self.answer(prompt)
        stated = map_tensors(lambda t: t.to(dtype), prompt)
        return Batch(stated, answer, {"w": problems.w.mT})

    @abstractmethod
    def answer(self, prompt: Descent) -> Tensor:
        """What is asked, (B, 1, D), in the prompt's dtype."""

    def ask(self, prompt: Any, query: Tensor) -> None:
        """The model sees no query."""

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
    """How far predictions are iterated."""

    iterates: int = Field(200, ge=1, description="T, steps that are taken with the predictions")


class Gradient(DescentTask[GradientConfig]):
    """Predict the gradient of least squares at w₀ (least_squares, D.2.5).

    Evaluation also descends with the predictions: w_{t+1} = w_t − η · model(…, w_t), t < T, from w₀
    in the run's dtype (eq. 11).
    """

    name = "gradient"
    version = 1
    Config = GradientConfig

    @property
    def primary(self) -> Primary:
        """‖w_T − w*‖², what the predictions are good for."""
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

    def answer(self, prompt: Descent) -> Tensor:
        """The gradient."""
        return prompt.gradient(prompt.w)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """gradient_error, the mean squared error over the D components, (B,)."""
        return {"gradient_error": (prediction - batch.target).square().mean(dim=(1, 2))}

    def evaluate(
        self, model: Callable[[Any], Tensor], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """gradient_error; ‖w_t − w*‖² and the error at the query for every t; the last of each."""
        size = context.batch_size or len(batch.target)
        parts = []
        for start in range(0, len(batch.target), size):
            part = map_tensors(lambda t, s=start: t[s : s + size], batch.prompt)
            parts.append(self._descend(model, to_device(part, context.device)))
        first, weights = (torch.cat(found) for found in zip(*parts, strict=True))
        errors = weights - batch.truth["w"]
        by_iterate = errors.square().sum(dim=2)
        at_query = (errors * batch.prompt.query.double()).sum(dim=2).square()
        return {
            **self.metrics(first, batch),
            "weight_error": by_iterate[:, -1],
            "query_error": at_query[:, -1],
            "weight_error_by_iterate": by_iterate,
            "query_error_by_iterate": at_query,
        }

    def _descend(self, model: Callable[[Any], Tensor], prompt: Descent) -> tuple[Tensor, Tensor]:
        """The first prediction (B, 1, D) and all iterates (B, T + 1, D), float64 on the CPU."""
        w, found, first = prompt.w, [prompt.w], None
        for _ in range(self.config.iterates):
            step = model(prompt.at(w))
            first = step if first is None else first
            w = w - self.config.step_size * step
            found.append(w)
        iterates = torch.cat(found, dim=1).to("cpu", torch.float64)
        return cast(Tensor, first).to("cpu", torch.float64), iterates

    def reference(self, batch: Batch) -> Tensor:
        """The gradient in the prompt's dtype."""
        return self.answer(batch.prompt)

    def floor(self, batch: Batch) -> dict[str, Tensor]:
        """Gradient descent in the prompt's dtype."""
        here = EvaluationContext(torch.device("cpu"), torch.Generator())
        return self.evaluate(self.answer, batch, here)


class StepsConfig(DescentConfig):
    """How many steps are asked for."""

    steps: int = Field(4, ge=1, description="k, gradient steps from w₀")


class GradientSteps(DescentTask[StepsConfig]):
    """Predict w_k, k steps of gradient descent from w₀, with the step size of the configuration."""

    name = "gradient-steps"
    version = 1
    Config = StepsConfig

    @property
    def signature(self) -> Signature:
        """See `describe_prompt`."""
        return self.describe_prompt("weights")

    def answer(self, prompt: Descent) -> Tensor:
        """w_k."""
        w = prompt.w
        for _ in range(self.config.steps):
            w = w - self.config.step_size * prompt.gradient(w)
        return w

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, the mean over the D components of w_k, (B,)."""
        return {"squared_error": (prediction - batch.target).square().mean(dim=(1, 2))}

    def reference(self, batch: Batch) -> Tensor:
        """The k steps in the prompt's dtype."""
        return self.answer(batch.prompt)
