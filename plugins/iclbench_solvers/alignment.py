"""The metric `alignment`: does a model implement gradient descent?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from iclbench import (
    Axis,
    Batch,
    EvaluationContext,
    Metric,
    Task,
    map_tensors,
    predict,
    torch_generator,
    training_batch,
)

from .solver import examples_of

#: A model is compared with 1…STEPS gradient steps.
STEPS = 64
#: Numbers of steps at which the distance is a curve.
SHOWN = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)
#: The grid of step sizes, as multiples of the prompt's η or of 1/N; the best one is refined.
FACTORS = 2.0 ** (np.arange(-40, 17) / 8)
#: Number of fresh prompts for choosing the step size and the number of steps.
FIT_PROMPTS = 1024
#: The smallest number of steps within this factor of the best fit is chosen.
TOLERANCE = 1.01


class Fit(NamedTuple):
    """The best step-size factor for k = 1…STEPS, and the index of the best k."""

    factors: np.ndarray
    best: int


class Alignment(Metric):
    """Distance of a model from k steps of gradient descent from 0 (after von Oswald et al. 2023).

    One step size serves all prompts: a multiple of the prompt's η, or of 1/N for prompts without
    one. For each k it is fitted to the squared differences of predictions on fresh prompts: to
    their median on a grid, then to the mean of d²/(d² + m) for the differences d and the median m
    of the best point. A few prompts with diverging predictions would dominate the mean of d². The
    number of steps k is the smallest of 1…64 whose median is within 1% of the best.

    Values on the evaluation prompts, at the last query:

    - `alignment_distance`: squared difference of predictions;
    - `alignment_cosine`: cosine similarity of the sensitivities ∂prediction/∂query;
    - `alignment_steps`, `alignment_step_size`: the fit, to five digits; NaN if the model's
      predictions are not finite. Multiples from 2⁻⁵ to 4 are tried, so 0.03 means that no step size
      fits;
    - `alignment_by_steps`: the distance for some k from 1 to 64.
    """

    name = "alignment"

    def supports(self, task: Task[Any]) -> str | None:
        """It needs a regression task with one output and an exchangeable query."""
        signature = task.signature
        if signature.target not in {"query", "prefixes"} or signature.output_width != 1:
            return "it needs a regression task that asks for one value at a query"
        if not {"x", "y", "query"} <= set(getattr(signature.prompt, "_fields", ())):
            return "it needs x, y and query, which the task's prompts lack"
        prompt = _fresh(task, 1, torch.float64).prompt
        with_query = task.with_query(prompt, prompt.query)
        return "the task has no with_query()" if with_query is None else None

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """alignment_by_steps runs over k = 1…64, about a factor √2 apart."""
        return {"alignment_by_steps": Axis("steps", tuple(map(float, SHOWN)))}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """Values (B,), and `alignment_by_steps` (B, K), in float64 on the CPU."""
        factors, best = fit(model, task, batch.prompt.x.dtype, context)
        descent = Descent(batch.prompt)
        predictions = predict(model, batch.prompt, context)[:, -1, 0]
        weights = {k: descent.last_weights(factors[k - 1], k) for k in (*SHOWN, best + 1)}
        distances = {k: (predictions - descent.at_query(w)).square() for k, w in weights.items()}
        # Gradient descent predicts wᵀx_query, so its sensitivity is w.
        slopes = sensitivity(model, task, batch, context)
        cosine = torch.cosine_similarity(slopes, weights[best + 1])
        ones, undefined = torch.ones_like(cosine), torch.full_like(cosine, torch.nan)
        return {
            "alignment_distance": distances[best + 1],
            "alignment_cosine": cosine,
            "alignment_steps": (best + 1) * ones if np.isfinite(factors[best]) else undefined,
            # Five digits, which other rounding leaves alone.
            "alignment_step_size": float(f"{factors[best]:.5g}") * ones,
            "alignment_by_steps": torch.stack([distances[k] for k in SHOWN], dim=1),
        }


class Descent:
    """Gradient descent on a prompt's objective, with ridge if any, in its eigenbasis in float64."""

    def __init__(self, prompt: Any) -> None:
        prompt = map_tensors(lambda t: t.to("cpu", torch.float64), prompt)
        examples = examples_of(prompt)
        x, y = examples.x, examples.y[..., :1]
        # In the eigenbasis a step acts on each coordinate alone: one decomposition serves the whole
        # grid of step sizes and numbers of steps.
        values, self.basis = torch.linalg.eigh(x.mT @ x)
        self.values = values if examples.ridge is None else values + examples.ridge[..., 0]
        self.right = (self.basis.mT @ (x.mT @ y))[..., 0]
        self.query = prompt.query[:, -1]
        # Without a step size in the prompt, factors are multiples of 1/N.
        unit = torch.full_like(self.values[:, :1], 1.0 / x.shape[1])
        self.unit = unit if examples.step is None else examples.step[..., 0]

    def weights(self, factor: float, steps: int) -> list[Tensor]:
        """The iterates w₁, …, w_steps, (B, D) each, with step size factor · unit."""
        return [self._weights(filtered) for filtered in self._filters(factor, steps)]

    def last_weights(self, factor: float, steps: int) -> Tensor:
        """The iterate w_steps (B, D), steps ≥ 1."""
        return self._weights(deque(self._filters(factor, steps), maxlen=1).pop())

    def _filters(self, factor: float, steps: int) -> Iterator[Tensor]:
        """The polynomial of the eigenvalues, (B, D), that each iterate applies to Xᵀy."""
        eta = factor * self.unit
        filtered = torch.zeros_like(self.values)
        for _ in range(steps):
            # w ← w + η(Xᵀy − XᵀXw), per eigenvalue, for Xᵀy = 1.
            filtered = filtered + eta * (1.0 - self.values * filtered)
            yield filtered

    def _weights(self, filtered: Tensor) -> Tensor:
        weights: Tensor = (self.basis @ (filtered * self.right)[..., None])[..., 0]
        return weights

    def at_query(self, w: Tensor) -> Tensor:
        """The predictions (B,) of w (B, D)."""
        predictions: Tensor = (w * self.query).sum(dim=1)
        return predictions


def fit(model: nn.Module, task: Task[Any], dtype: torch.dtype, context: EvaluationContext) -> Fit:
    """The best step size for each number of steps, and the best number, on fresh prompts."""
    prompt = _fresh(task, FIT_PROMPTS, dtype).prompt
    predictions = predict(model, prompt, context)[:, -1, 0]
    # Infinities too are infinitely far: of them, nan_to_num makes the largest float.
    predictions = predictions.where(predictions.isfinite(), torch.nan)
    descent = Descent(prompt)

    def squares(w: Tensor) -> Tensor:
        # The NaN of a diverged descent counts as infinitely far, so the median stays defined.
        return (descent.at_query(w) - predictions).square().nan_to_num(torch.inf)

    grid = np.array(
        [[float(squares(w).median()) for w in descent.weights(f, STEPS)] for f in FACTORS]
    )
    factors, best = [], []
    for k in range(1, STEPS + 1):

        def squares_at(factor: float, k: int = k) -> Tensor:
            return squares(descent.last_weights(factor, k))

        factors.append(_refined(grid[:, k - 1], squares_at))
        best.append(float(squares_at(factors[-1]).median()))
    if not np.isfinite(min(best)):
        return Fit(np.full(STEPS, np.nan), 0)
    # argmax gives the first True, that is, the fewest steps that fit about as well as the best.
    good = np.asarray(best) <= TOLERANCE * min(best)
    return Fit(np.asarray(factors), int(np.argmax(good)))


def _refined(medians: np.ndarray, squares_at: Callable[[float], Tensor]) -> float:
    """The best factor near the best one of the grid, whose squares have these medians."""
    i = int(np.argmin(medians))
    factor, scale = FACTORS[i], float(medians[i])
    inside = 0 < i < len(FACTORS) - 1 and np.isfinite(medians[i - 1 : i + 2]).all()
    if not inside or scale == 0:
        return float(factor)

    def loss(candidate: float) -> float:
        # Smooth, unlike the median, whose many local minima depend on the rounding of predictions.
        return float((1.0 - scale / (squares_at(candidate) + scale)).mean())

    refined = minimize_scalar(
        loss,
        bounds=(FACTORS[i - 1], FACTORS[i + 1]),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(refined.x if refined.fun < loss(factor) else factor)


def sensitivity(
    model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
) -> Tensor:
    """∂prediction/∂query at the last query, (B, D), float64 on the CPU."""

    def gradient(prompt: Any) -> Tensor:
        with torch.enable_grad():
            query = prompt.query.detach().clone().requires_grad_()
            answer = model(task.with_query(prompt, query))[:, -1, 0].sum()
            # A model that ignores the query has sensitivity 0.
            if not answer.requires_grad:
                return torch.zeros_like(query[:, -1])
            slope: Tensor = torch.autograd.grad(answer, query, materialize_grads=True)[0]
        return slope[:, -1]

    return predict(gradient, batch.prompt, context)


def _fresh(task: Task[Any], n: int, dtype: torch.dtype) -> Batch:
    return training_batch(task, n, torch_generator("cpu", "alignment"), dtype)
