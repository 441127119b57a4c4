"""The metric `descent-error`: is every block a step of functional gradient descent?"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from iclbench import Axis, Batch, EvaluationContext, Metric, Task, map_tensors, predict

from .descent import Head, descend
from .gd_form import GDForm, kernel_inputs
from .kernels import covariates


class DescentError(Metric):
    """Distance of the predicted function from functional gradient descent written out in float64.

    A block of the model updates a function f and the expected embedding E(w_e) of the class.
    `f_squared_error` and `expectation_squared_error` are squared distances after the last block,
    averaged over positions; `…_by_block` gives them after every block. The reference overwrites E
    exactly, so with `erase` the error of E is that of head 2. It descends on the parameters A for
    kernels with finite features. The floor is the same descent in the prompt's dtype.
    """

    name = "descent-error"

    def supports(self, task: Task[Any]) -> str | None:
        """Accept tasks that ask for a class, with x, y and query."""
        fields = set(getattr(task.signature.prompt, "_fields", ()))
        if {"x", "y", "query"} <= fields and task.signature.target == "class":
            return None
        return "it needs a task that asks for the class of a query"

    def supports_model(self, model: nn.Module) -> str | None:
        """Accept the constrained form of gd-transformer."""
        return None if isinstance(model, GDForm) else "it needs gd-transformer with form=gd"

    def axes(self, model: nn.Module) -> dict[str, Axis]:
        """Blocks 1…K."""
        blocks = Axis("block", tuple(float(k + 1) for k in range(cast(GDForm, model).blocks)))
        return {"f_squared_error_by_block": blocks, "expectation_squared_error_by_block": blocks}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """See the class."""
        gd = cast(GDForm, model)
        states = predict(lambda prompt: _stacked(gd.states(prompt)), batch.prompt, context)
        return _errors(states, _stacked(reference_descent(gd, batch.prompt, torch.float64)))

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """The error of the reference descent in the prompt's dtype."""
        gd = cast(GDForm, model)
        rounded = _stacked(reference_descent(gd, batch.prompt, batch.prompt.x.dtype)).double()
        return _errors(rounded, _stacked(reference_descent(gd, batch.prompt, torch.float64)))


def reference_descent(
    model: GDForm, prompt: Any, dtype: torch.dtype
) -> list[tuple[Tensor, Tensor]]:
    """The descent with a model's parameters, in `dtype` on the CPU (see `descend`)."""

    def cast_to(t: Tensor) -> Tensor:
        t = t.detach().cpu()
        return t.to(dtype) if t.is_floating_point() else t

    prompt = map_tensors(cast_to, prompt)
    parameters = {name: cast_to(p) for name, p in model.named_parameters()}
    W, project, steps = (parameters[name] for name in ("embedding", "project", "step"))
    matrices = project if project.ndim == 3 else project.diag_embed()
    x = covariates(prompt, model.normalize)
    inputs = kernel_inputs(x, parameters["log_scale"], parameters.get("diagonal"))
    heads = [Head(head_x, matrix) for head_x, matrix in zip(inputs, matrices, strict=True)]
    return descend(heads, W[prompt.y], W, steps, model.kernel, degree=model.degree, bias=model.bias)


def _stacked(states: list[tuple[Tensor, Tensor]]) -> Tensor:
    """f and E(w_e) after every step, (B, K, 2, N + Q, d')."""
    return torch.stack([torch.stack(pair, dim=1) for pair in states[1:]], dim=1)


def _errors(states: Tensor, exact: Tensor) -> dict[str, Tensor]:
    squares = (states - exact).square().sum(dim=4).mean(dim=3)
    f, expectation = squares.unbind(dim=2)
    return {
        "f_squared_error": f[:, -1],
        "expectation_squared_error": expectation[:, -1],
        "f_squared_error_by_block": f,
        "expectation_squared_error_by_block": expectation,
    }
