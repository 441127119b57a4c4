"""The solver `functional-gd`: gradient descent on a context's cross-entropy."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from iclbench import Config, Signature, Solver, added_later

from .descent import Head, descend, stable_step
from .kernels import DEGREE, Kernel, covariates, median_scale, require_degree


class FunctionalGDSolverConfig(Config):
    """Steps, kernel, and the class embeddings, which prompts do not contain."""

    steps: int = Field(10, ge=0, description="K, number of gradient steps from f = 0")
    step_size: float | None = Field(
        None,
        gt=0,
        description="α, step size; null: 1/L for each context, with a bound L on the curvature",
    )
    kernel: Kernel = Field(
        "rbf",
        description="κ, the kernel; with linear and polynomial kernels, the steps are on the "
        "parameters A",
    )
    scale: float | None = Field(
        None,
        gt=0,
        description="factor on x in the kernel; null: 1 / the median distance between two examples",
    )
    embedding: tuple[tuple[float, ...], ...] | None = Field(
        None,
        description="W_e, one row per class; null: one-hot (multinomial logistic regression)",
    )
    degree: int = added_later(DEGREE, ge=1, le=100, description="degree, for kernel=polynomial")
    bias: bool = added_later(
        False, description="f(x) = Aψ(x) + b, with gradient steps on b as well"
    )
    normalize: bool = added_later(False, description="divide the covariates by their norms")

    @model_validator(mode="after")
    def _degree_has_a_meaning(self) -> FunctionalGDSolverConfig:
        require_degree(self.kernel, self.degree)
        return self


class FunctionalGD(Solver):
    """f(x) = Aψ(x) by K steps of gradient descent on the context's cross-entropy (eqs. 2–3).

    It descends on A (d', m) where the features ψ are finite, and on f elsewhere.
    """

    name = "functional-gd"
    Config = FunctionalGDSolverConfig

    def supports(self, signature: Signature, config: FunctionalGDSolverConfig) -> str | None:
        """Accept tasks that ask for a class, with x, y and query, if W_e has a row per class."""
        missing = {"x", "y", "query"} - set(getattr(signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))}, which the task's prompts lack"
        if signature.target != "class":
            return f"it answers class, not {signature.target}"
        rows = config.embedding
        if rows is not None and (len(rows) != signature.classes or len({*map(len, rows)}) != 1):
            return f"embedding must have {signature.classes} rows of one length"
        return None

    def build(self, signature: Signature, config: FunctionalGDSolverConfig) -> nn.Module:
        """A module without parameters."""
        return _Descend(signature.classes, config)


class _Descend(nn.Module):
    def __init__(self, classes: int, config: FunctionalGDSolverConfig) -> None:
        super().__init__()
        self.classes, self.config = classes, config

    def forward(self, prompt: Any) -> Tensor:
        """Return the logits W_e f of the queries, (B, Q, C)."""
        c = self.config
        x, n = covariates(prompt, c.normalize), prompt.x.shape[1]
        x = x * (median_scale(c.kernel, x[:, :n]) if c.scale is None else c.scale)
        one_hot = torch.eye(self.classes, dtype=x.dtype, device=x.device)
        W = one_hot if c.embedding is None else x.new_tensor(c.embedding)
        if c.step_size is None:
            step = stable_step(x[:, :n], W, c.kernel, degree=c.degree, bias=c.bias)
        else:
            step = x.new_full((1, 1, 1), c.step_size)
        steps = step.expand(c.steps, *step.shape)
        states = descend([Head(x)], W[prompt.y], W, steps, c.kernel, degree=c.degree, bias=c.bias)
        return states[-1][0][:, n:] @ W.mT
