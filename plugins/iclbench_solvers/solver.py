"""What the regression solvers share: which signatures they answer, and in which form."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from iclbench import Signature, Solver


class Examples(NamedTuple):
    """The examples of a regression problem: x (B, k, D), y (B, k, K), k ≥ 0.

    ridge and step (B, 1, 1) are those of a prompt that carries them, else None.
    """

    x: Tensor
    y: Tensor
    ridge: Tensor | None = None
    step: Tensor | None = None


def examples_of(prompt: Any) -> Examples:
    """All examples of a prompt with the fields x and y."""
    given = (getattr(prompt, name, None) for name in ("ridge", "step"))
    return Examples(prompt.x, prompt.y, *(None if v is None else v[:, None, None] for v in given))


class RegressionSolver(Solver):
    """Answers `query` and `prefixes` on prompts with the fields x, y and query."""

    targets: tuple[str, ...] = ("query", "prefixes")

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs the structured fields, and a question that it can answer."""
        fields = set(getattr(signature.prompt, "_fields", ()))
        if not {"x", "y", "query"} <= fields:
            return f"it needs x, y and query, which {signature.prompt.__name__} does not have"
        if signature.target not in self.targets:
            return f"it answers {', '.join(self.targets)}, not {signature.target}"
        return None

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module without parameters that maps a prompt to a prediction."""
        return Solve(self, signature, config)

    def solve(self, prompt: Any, target: str, config: Any) -> Tensor:
        """The prediction (B, P, W) that the signature asks for."""
        all_of_them = examples_of(prompt)
        if target == "query":
            return self.answer(all_of_them, prompt.query, config)
        inputs = torch.cat([prompt.x, prompt.query], dim=1)
        answers = []
        for k in range(inputs.shape[1]):
            first = all_of_them._replace(x=prompt.x[:, :k], y=prompt.y[:, :k])
            answers.append(self.answer(first, inputs[:, k : k + 1], config))
        return torch.cat(answers, dim=1)

    @abstractmethod
    def answer(self, examples: Examples, query: Tensor, config: Any) -> Tensor:
        """The values (B, Q, K) at query (B, Q, D)."""


class LinearSolver(RegressionSolver):
    """A solver that finds weights w, and so answers `weights` too."""

    targets = ("query", "prefixes", "weights")

    def solve(self, prompt: Any, target: str, config: Any) -> Tensor:
        """The weights (B, K, D) if they are asked for, else as every solver."""
        if target == "weights":
            return self.weights(examples_of(prompt), config).mT
        return super().solve(prompt, target, config)

    def answer(self, examples: Examples, query: Tensor, config: Any) -> Tensor:
        """query · w, and 0 without examples."""
        if examples.x.shape[1] == 0:
            return query.new_zeros(query.shape[0], query.shape[1], examples.y.shape[2])
        return query @ self.weights(examples, config)

    @abstractmethod
    def weights(self, examples: Examples, config: Any) -> Tensor:
        """w (B, D, K) from k ≥ 1 examples."""


class Solve(nn.Module):
    """A solver as a module: prompt → prediction (B, P, W)."""

    def __init__(self, solver: RegressionSolver, signature: Signature, config: Any) -> None:
        super().__init__()
        self.solver, self.target, self.config = solver, signature.target, config

    def forward(self, prompt: Any) -> Tensor:
        """The prediction that the signature asks for."""
        return self.solver.solve(prompt, self.target, self.config)
