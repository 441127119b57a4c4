"""The metric `iterates`: does a model follow gradient descent step by step?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from iclbench import (
    Axis,
    Batch,
    EvaluationContext,
    Metric,
    ShowsIterates,
    Task,
    offers,
    predict,
)

from .iterative import GradientDescent, GradientDescentConfig
from .solver import examples_of


class Iterates(Metric):
    """`iterate_error`: the squared difference of w_t from gradient descent, largest component.

    The w_t are the model's `trajectory`. Gradient descent uses the prompt's step size (Hagiwara,
    eqs. 35–36) in extended precision on the prompt's numbers. The floor is gradient descent in the
    run's dtype.
    """

    name = "iterates"

    def supports(self, task: Task[Any]) -> str | None:
        """It needs prompts that state a step size."""
        missing = {"x", "y", "ridge", "step"} - set(getattr(task.signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
        return None

    def supports_model(self, model: nn.Module) -> str | None:
        """It needs a trajectory."""
        return None if offers(model, ShowsIterates) else "it shows no trajectory"

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """iterate_error runs over the iterates t = 0…T."""
        return {"iterate_error": Axis("iterate", tuple(map(float, range(_steps(model) + 1))))}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """The error (B, T + 1)."""
        iterates = predict(cast(Any, model).trajectory, batch.prompt, context)
        return {"iterate_error": _difference(iterates, batch.prompt)}

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """The error (B, T + 1) of gradient descent in the run's dtype."""
        rounded = _gradient_descent(batch.prompt, _steps(model)).double()
        return {"iterate_error": _difference(rounded, batch.prompt)}


def _steps(model: Any) -> int:
    return int(model.iterates)


def _gradient_descent(prompt: Any, steps: int) -> Tensor:
    """w₀ = 0, …, w_steps, (B, steps + 1, D), in the prompt's dtype."""
    # The paper's objective has no 1/N (Hagiwara, eq. 33).
    config = GradientDescentConfig(steps=steps, step_size="prompt", normalize="sum")
    iterates = [w[..., 0] for w in GradientDescent().iterates(examples_of(prompt), config)]
    return torch.stack(iterates, dim=1)


def _difference(iterates: Tensor, prompt: Any) -> Tensor:
    """The squared difference from exact gradient descent, largest component, (B, T + 1)."""
    exact = _exact_descent(prompt, iterates.shape[1] - 1)
    # Subtracted in extended precision: rounded to float64, the reference would err as float64 does.
    differences = np.abs(iterates.numpy() - exact).max(axis=2)
    return torch.from_numpy(np.square(differences).astype(np.float64))


def _exact_descent(prompt: Any, steps: int) -> np.ndarray:
    """w₀ = 0, …, w_steps, (B, steps + 1, D), in extended precision on the prompt's numbers."""
    fields = (prompt.x, prompt.y, prompt.ridge[:, None, None], prompt.step[:, None, None])
    x, y, ridge, step = (f.cpu().numpy().astype(np.longdouble) for f in fields)
    # numpy multiplies long doubles without BLAS, so memory order matters.
    transposed = np.ascontiguousarray(x.transpose(0, 2, 1))
    w = np.zeros((len(x), x.shape[2], 1), dtype=np.longdouble)
    iterates = [w]
    for _ in range(steps):
        w = w - step * (transposed @ (x @ w - y) + ridge * w)
        iterates.append(w)
    return np.stack(iterates, axis=1)[..., 0]
