"""The metrics `alignment` and `iterates`: is a model gradient descent, and step by step?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from iclbench import (
    Axis,
    Batch,
    EvaluationContext,
    Metric,
    ShowsIterates,
    Task,
    map_tensors,
    offers,
    predict,
    torch_generator,
)

from .iterative import GradientDescent, GradientDescentConfig
from .solver import examples_of

#: Numbers of gradient steps that a model is compared with.
STEPS = 64
#: Step sizes tried first, as multiples of the prompt's η, or of 1/N; then the best is refined.
FACTORS = 2.0 ** (np.arange(-40, 17) / 8)
#: Fresh prompts on which the step size and the number of steps are chosen.
FITTED_ON = 1024
#: Of numbers of steps that fit as well up to this factor, the smallest is taken.
AS_GOOD = 1.01


class Fit(NamedTuple):
    """For k = 1…STEPS the best multiple of the step size; the index of the k that fits best."""

    factors: np.ndarray
    best: int


class Alignment(Metric):
    """How near a model is to k steps of gradient descent from 0 (after von Oswald et al. 2023).

    One step size serves all prompts: a multiple of the prompt's η, or of 1/N where it states none.
    It is fitted for each k by the median squared distance of predictions on fresh prompts, since a
    mean is decided by the prompts on which a polynomial of the data explodes; k is the best of
    1…64. On the evaluation prompts, at the last query: `alignment_distance`, the squared difference
    of predictions; `alignment_cosine`, that of the sensitivities ∂prediction/∂query;
    `alignment_steps` and `alignment_step_size`, what fitted (NaN where the model's predictions are
    not finite; multiples from 2⁻⁵ to 4 are tried, so 0.03 is an edge: no step fits);
    `alignment_by_steps`, the distance for every k.
    """

    name = "alignment"

    def supports(self, task: Task[Any]) -> str | None:
        """It needs a regression task with one output that can be asked another query."""
        signature = task.signature
        if signature.target not in {"query", "prefixes"} or signature.output_width != 1:
            return "it needs a regression task that asks for one value at a query"
        if not {"x", "y", "query"} <= set(getattr(signature.prompt, "_fields", ())):
            return f"it needs x, y and query, which {signature.prompt.__name__} does not have"
        prompt = _fresh(task, 1, torch.float64).prompt
        asked = task.ask(prompt, prompt.query)
        return "the task has no ask()" if asked is None else None

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """alignment_by_steps runs over k = 1…64."""
        return {"alignment_by_steps": Axis("steps", tuple(map(float, range(1, STEPS + 1))))}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """The five values."""
        found = fit(model, task, batch.prompt.x.dtype, context)
        descent = Descent(batch.prompt)
        predictions = predict(model, batch.prompt, context)[:, -1, 0]
        each = [descent.weights(f, k)[-1] for k, f in enumerate(found.factors, start=1)]
        distances = torch.stack([(predictions - descent.at_query(w)).square() for w in each], 1)
        best = found.best
        cosine = torch.cosine_similarity(sensitivity(model, task, batch, context), each[best])
        same, nothing = torch.ones_like(cosine), torch.full_like(cosine, torch.nan)
        return {
            "alignment_distance": distances[:, best],
            "alignment_cosine": cosine,
            "alignment_steps": (best + 1) * same if np.isfinite(found.factors[best]) else nothing,
            "alignment_step_size": float(found.factors[best]) * same,
            "alignment_by_steps": distances,
        }


class Descent:
    """Gradient descent on a prompt's (ridge) objective in its eigenbasis, in float64."""

    def __init__(self, prompt: Any) -> None:
        prompt = map_tensors(lambda t: t.to("cpu", torch.float64), prompt)
        examples = examples_of(prompt)
        x, y = examples.x, examples.y[..., :1]
        values, self.basis = torch.linalg.eigh(x.mT @ x)
        self.values = values if examples.ridge is None else values + examples.ridge[..., 0]
        self.right = (self.basis.mT @ (x.mT @ y))[..., 0]
        self.query = prompt.query[:, -1]
        unit = torch.full_like(self.values[:, :1], 1.0 / x.shape[1])
        self.unit = unit if examples.step is None else examples.step[..., 0]

    def weights(self, factor: float, steps: int) -> list[Tensor]:
        """w₁, …, w_steps, each (B, D), with the step size factor · unit."""
        eta = factor * self.unit
        filtered = torch.zeros_like(self.values)
        found = []
        for _ in range(steps):
            filtered = filtered + eta * (1.0 - self.values * filtered)
            found.append((self.basis @ (filtered * self.right)[..., None])[..., 0])
        return found

    def at_query(self, w: Tensor) -> Tensor:
        """The predictions (B,) of w (B, D)."""
        found: Tensor = (w * self.query).sum(dim=1)
        return found


def fit(model: nn.Module, task: Task[Any], dtype: torch.dtype, context: EvaluationContext) -> Fit:
    """The step size for each number of steps, and the best number, on fresh prompts."""
    prompt = _fresh(task, FITTED_ON, dtype).prompt
    predictions = predict(model, prompt, context)[:, -1, 0]
    descent = Descent(prompt)

    def distances(factor: float, steps: int) -> np.ndarray:
        found = torch.stack([descent.at_query(w) for w in descent.weights(factor, steps)], dim=1)
        squares = (found - predictions[:, None]).square().nan_to_num(torch.inf)
        return np.asarray(squares.median(dim=0).values)

    grid = np.stack([distances(factor, STEPS) for factor in FACTORS])
    factors, best = [], []
    for k in range(1, STEPS + 1):
        at = int(np.argmin(grid[:, k - 1]))
        candidates = [(grid[at, k - 1], FACTORS[at])]
        if 0 < at < len(FACTORS) - 1 and np.isfinite(grid[at - 1 : at + 2, k - 1]).all():
            refined = minimize_scalar(
                lambda f, k=k: distances(f, k)[-1],
                bounds=(FACTORS[at - 1], FACTORS[at + 1]),
                method="bounded",
            )
            candidates.append((refined.fun, refined.x))
        distance, factor = min(candidates)
        best.append(distance)
        factors.append(factor)
    if not np.isfinite(min(best)):
        return Fit(np.full(STEPS, np.nan), 0)
    good = np.asarray(best) <= AS_GOOD * min(best)
    return Fit(np.asarray(factors), int(np.argmax(good)))


def sensitivity(
    model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
) -> Tensor:
    """∂prediction/∂query at the last query, (B, D), float64 on the CPU."""

    def gradient(prompt: Any) -> Tensor:
        with torch.enable_grad():
            query = prompt.query.detach().clone().requires_grad_()
            answer = model(task.ask(prompt, query))[:, -1, 0].sum()
            if not answer.requires_grad:
                return torch.zeros_like(query[:, -1])
            found: Tensor = torch.autograd.grad(answer, query, materialize_grads=True)[0]
        return found[:, -1]

    return predict(gradient, batch.prompt, context)


def _fresh(task: Task[Any], n: int, dtype: torch.dtype) -> Batch:
    return task.sample(n, torch_generator("cpu", "alignment"), torch.device("cpu"), dtype)


class Iterates(Metric):
    """`iterate_error`: the largest squared difference of a component of w_t from gradient descent.

    Gradient descent has the prompt's step size and runs in extended precision on the prompt's
    numbers (elsa, eqs. 35–36); w_t are the model's `trajectory`. The floor is gradient descent in
    the run's dtype.
    """

    name = "iterates"

    def supports(self, task: Task[Any]) -> str | None:
        """It needs prompts that state a step size."""
        missing = {"x", "y", "ridge", "step"} - set(getattr(task.signature.prompt, "_fields", ()))
        return f"it needs {', '.join(sorted(missing))} in the prompt" if missing else None

    def supports_model(self, model: nn.Module) -> str | None:
        """It needs a trajectory."""
        return None if offers(model, ShowsIterates) else "it shows no trajectory"

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """iterate_error runs over the iterates t = 0…T."""
        return {"iterate_error": Axis("iterate", tuple(map(float, range(_steps(model) + 1))))}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """(B, T + 1)."""
        found = predict(cast(Any, model).trajectory, batch.prompt, context)
        return {"iterate_error": _difference(found, batch.prompt)}

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """(B, T + 1)."""
        own = _gradient_descent(batch.prompt, _steps(model)).double()
        return {"iterate_error": _difference(own, batch.prompt)}


def _steps(model: Any) -> int:
    return int(model.iterates)


def _gradient_descent(prompt: Any, steps: int) -> Tensor:
    """w₀ = 0, …, w_steps, (B, steps + 1, D), in the prompt's dtype."""
    config = GradientDescentConfig(steps=steps, step_size="prompt", normalize="sum")
    found = [w[..., 0] for w in GradientDescent().iterates(examples_of(prompt), config)]
    return torch.stack(found, dim=1)


def _difference(found: Tensor, prompt: Any) -> Tensor:
    """The largest squared difference of a component from exact gradient descent, (B, T + 1)."""
    exact = _exact_descent(prompt, found.shape[1] - 1)
    differences = np.abs(found.numpy() - exact).max(axis=2)
    return torch.from_numpy(np.square(differences).astype(np.float64))


def _exact_descent(prompt: Any, steps: int) -> np.ndarray:
    """w₀ = 0, …, w_steps, (B, steps + 1, D), in extended precision on the prompt's numbers."""
    fields = (prompt.x, prompt.y, prompt.ridge[:, None, None], prompt.step[:, None, None])
    x, y, ridge, step = (f.cpu().numpy().astype(np.longdouble) for f in fields)
    transposed = np.ascontiguousarray(x.transpose(0, 2, 1))
    w = np.zeros((len(x), x.shape[2], 1), dtype=np.longdouble)
    found = [w]
    for _ in range(steps):
        w = w - step * (transposed @ (x @ w - y) + ridge * w)
        found.append(w)
    return np.stack(found, axis=1)[..., 0]
