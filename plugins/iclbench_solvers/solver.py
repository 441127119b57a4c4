"""What the regression solvers share: which signatures they answer, and in which form."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from iclbench import Signature, Solver


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
        return _Solve(self, signature, config)

    def solve(self, prompt: Any, target: str, config: Any) -> Tensor:
        """The prediction (B, P, W) that the signature asks for."""
        x, y, query = prompt.x, prompt.y, prompt.query
        if target == "query":
            return self.answer(x, y, query, config)
        inputs = torch.cat([x, query], dim=1)
        answers = [
            self.answer(x[:, :k], y[:, :k], inputs[:, k : k + 1], config)
            for k in range(inputs.shape[1])
        ]
        return torch.cat(answers, dim=1)

    @abstractmethod
    def answer(self, x: Tensor, y: Tensor, query: Tensor, config: Any) -> Tensor:
        """The values (B, Q, K) at query (B, Q, D) from x (B, k, D), y (B, k, K), k ≥ 0."""


class LinearSolver(RegressionSolver):
    """A solver that finds weights w, and so answers `weights` too."""

    targets = ("query", "prefixes", "weights")

    def solve(self, prompt: Any, target: str, config: Any) -> Tensor:
        """The weights (B, K, D) if they are asked for, else as every solver."""
        if target == "weights":
            return self.weights(prompt.x, prompt.y, config).mT
        return super().solve(prompt, target, config)

    def answer(self, x: Tensor, y: Tensor, query: Tensor, config: Any) -> Tensor:
        """query · w, and 0 without examples."""
        if x.shape[1] == 0:
            return query.new_zeros(query.shape[0], query.shape[1], y.shape[2])
        return query @ self.weights(x, y, config)

    @abstractmethod
    def weights(self, x: Tensor, y: Tensor, config: Any) -> Tensor:
        """w (B, D, K) from x (B, k, D), y (B, k, K), k ≥ 1."""


class _Solve(nn.Module):
    def __init__(self, solver: RegressionSolver, signature: Signature, config: Any) -> None:
        super().__init__()
        self.solver, self.target, self.config = solver, signature.target, config

    def forward(self, prompt: Any) -> Tensor:
        return self.solver.solve(prompt, self.target, self.config)
