"""Base classes of the regression solvers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from iclbench import Signature, Solver


class Examples(NamedTuple):
    """The examples of a regression problem: x (B, k, D) and y (B, k, K), k ≥ 0.

    `ridge` and `step` (B, 1, 1) and the weights `start` (B, D, 1) come from the prompt; None if it
    has none.
    """

    x: Tensor
    y: Tensor
    ridge: Tensor | None = None
    step: Tensor | None = None
    start: Tensor | None = None


def examples_of(prompt: Any) -> Examples:
    """All examples of a prompt with the fields x and y."""
    scalars = [getattr(prompt, name, None) for name in ("ridge", "step")]
    ridge, step = (None if v is None else v[:, None, None] for v in scalars)
    w = getattr(prompt, "w", None)
    return Examples(prompt.x, prompt.y, ridge, step, None if w is None else w.mT)


class RegressionSolver(Solver):
    """A solver of `query` and `prefixes` tasks, on prompts with x, y and query."""

    targets: tuple[str, ...] = ("query", "prefixes")

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs x, y and query, and one of `targets`."""
        fields = set(getattr(signature.prompt, "_fields", ()))
        if not {"x", "y", "query"} <= fields:
            return "it needs x, y and query, which the task's prompts lack"
        if signature.target not in self.targets:
            return f"it answers {', '.join(self.targets)}, not {signature.target}"
        return None

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters that maps a prompt to a prediction."""
        return SolverModule(self, signature, config)

    def solve(self, prompt: Any, target: str, config: Any) -> Tensor:
        """The prediction (B, P, W) for a target."""
        examples = examples_of(prompt)
        if target == "query":
            return self.answer(examples, prompt.query, config)
        # The answers are asked at every input: of prefix k at input k + 1, last at the query.
        inputs = torch.cat([prompt.x, prompt.query], dim=1)
        answers = []
        for k in range(inputs.shape[1]):
            # Each prefix is a problem of its own: nothing is reused from the shorter ones.
            first = examples._replace(x=prompt.x[:, :k], y=prompt.y[:, :k])
            answers.append(self.answer(first, inputs[:, k : k + 1], config))
        return torch.cat(answers, dim=1)

    @abstractmethod
    def answer(self, examples: Examples, query: Tensor, config: Any) -> Tensor:
        """The values (B, Q, K) at query (B, Q, D)."""


class LinearSolver(RegressionSolver):
    """A solver that computes weights w; it also solves `weights` tasks."""

    targets = ("query", "prefixes", "weights")

    def solve(self, prompt: Any, target: str, config: Any) -> Tensor:
        """The weights (B, K, D) for the target `weights`; else as `RegressionSolver`."""
        if target == "weights":
            return self.weights(examples_of(prompt), config).mT
        return super().solve(prompt, target, config)

    def answer(self, examples: Examples, query: Tensor, config: Any) -> Tensor:
        """query · w; 0 without examples."""
        if examples.x.shape[1] == 0:
            # The solution of least norm for no equations is 0.
            return query.new_zeros(query.shape[0], query.shape[1], examples.y.shape[2])
        return query @ self.weights(examples, config)

    @abstractmethod
    def weights(self, examples: Examples, config: Any) -> Tensor:
        """w (B, D, K) from k ≥ 1 examples."""


class SolverModule(nn.Module):
    """A solver as a module: prompt → prediction (B, P, W)."""

    def __init__(self, solver: RegressionSolver, signature: Signature, config: Any) -> None:
        super().__init__()
        self.solver, self.target, self.config = solver, signature.target, config

    def forward(self, prompt: Any) -> Tensor:
        """The prediction that the signature asks for."""
        return self.solver.solve(prompt, self.target, self.config)
