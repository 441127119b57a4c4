"""The task `gradient`: one gradient step, and the descent that follows its predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from flint import arb_mat
from pydantic import Field
from torch import Tensor

from iclbench import (
    Axis,
    Batch,
    Distance,
    EvaluationContext,
    FloorKind,
    Primary,
    Shift,
    Signature,
    Statistic,
    map_tensors,
    to_device,
)

from .descent import Descent, DescentConfig, DescentTask, exact_gradient

#: Shifts under which XᵀX/N has larger eigenvalues than in training, as it has under `condition-…`:
#: the step size is fixed, so that the descent of the exact gradient diverges in many prompts.
STEEPER = frozenset({"heavy-tailed", "inputs-double", "inputs-triple", "opposite-quadrants",
                     "quadrants", "skewed"})  # fmt: skip

#: The iterates that a curve shows: all up to this many, else about as many, spread by logarithm. A
#: record keeps every prompt's value at each.
MOST_SHOWN = 20


class GradientConfig(DescentConfig):
    """The number of steps taken with the predictions."""

    iterates: int = Field(
        200, ge=1, description="T, number of gradient steps taken with the predictions"
    )


class Gradient(DescentTask[GradientConfig]):
    """Predict the gradient of least squares at w₀ (Liu et al., D.2.5).

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
        "prediction that points to w* more directly can pass it. For `gradient_error`, the floor "
        "is the attainable error."
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
    def statistic(self) -> Statistic:
        """The mean digits without noise: descents that converge span orders of magnitude."""
        return "mean" if self.config.noise else "mean digits"

    @property
    def shifts(self) -> dict[str, Shift]:
        """Those under which the exact gradient's descent converges, to a w* that x determines."""
        left_out = STEEPER | self.few_signs | {"half-subspace"}
        return {
            name: shift
            for name, shift in super().shifts.items()
            if name not in left_out and not name.startswith("condition-")
        }

    @property
    def signature(self) -> Signature:
        """See `describe_prompt`."""
        return self.describe_prompt("gradient")

    @property
    def shown(self) -> list[int]:
        """The iterates t of both curves, from 0 to T."""
        last = self.config.iterates
        if last <= MOST_SHOWN:
            return list(range(last + 1))
        spread = {round(last ** (k / MOST_SHOWN)) for k in range(MOST_SHOWN + 1)}
        return sorted({0, last, *spread})

    @property
    def axes(self) -> dict[str, Axis]:
        """Both curves run over `shown` iterates."""
        iterates = Axis("iterate", tuple(map(float, self.shown)))
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
        """gradient_error; ‖w_t − w*‖² and the query's error, for shown t and for the last."""
        size = context.batch_size or len(batch.target)
        parts = []
        for start in range(0, len(batch.target), size):
            part = map_tensors(lambda t, s=start: t[s : s + size], batch.prompt)
            parts.append(self._descend(model, to_device(part, context.device)))
        first, weights = (torch.cat(results) for results in zip(*parts, strict=True))
        return self._scores(first, weights, batch)

    def _scores(self, first: Tensor, weights: Tensor, batch: Batch) -> dict[str, Tensor]:
        """The metrics of a first prediction (B, 1, D) and of shown iterates (B, k, D)."""
        errors = weights - batch.truth["w"]
        by_iterate = errors.square().sum(dim=2)
        at_query = (errors * batch.prompt.query.double()).sum(dim=2).square()
        return self.metrics(first, batch) | _by_iterate(by_iterate, at_query)

    def _descend(self, model: Callable[[Any], Tensor], prompt: Descent) -> tuple[Tensor, Tensor]:
        """The first prediction (B, 1, D) and shown iterates (B, k, D), float64 on the CPU."""
        w, visited, first = prompt.w, [prompt.w], None
        for _ in range(self.config.iterates):
            step = model(prompt.at(w))
            # The first prediction, at w₀, is the one that training asks for.
            first = step if first is None else first
            w = w - self.config.step_size * step
            visited.append(w)
        iterates = torch.cat([visited[t] for t in self.shown], dim=1).to("cpu", torch.float64)
        return cast(Tensor, first).to("cpu", torch.float64), iterates

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """See `Task`; the iterates are measured against w*, at the query against w*ᵀx_query."""
        w, count = batch.truth["w"], len(self.shown)
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
        weights = batch.prompt.w.double().expand(-1, len(self.shown), -1)
        return self._scores(torch.zeros_like(batch.target), weights, batch)


def _by_iterate(weights: Tensor, at_query: Tensor) -> dict[str, Tensor]:
    """Both curves, (B, k), and their last values."""
    return {
        "weight_error": weights[:, -1],
        "query_error": at_query[:, -1],
        "weight_error_by_iterate": weights,
        "query_error_by_iterate": at_query,
    }
