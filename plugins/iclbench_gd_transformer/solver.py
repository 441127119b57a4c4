"""The solver `functional-gd`: gradient descent on each context's cross-entropy, written out."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import one_hot

from iclbench import Config, Signature, Solver

from .kernels import Kernel, attention


class FunctionalGDSolverConfig(Config):
    """Steps, kernel, and the embeddings, which no prompt states."""

    steps: int = Field(10, ge=0, description="K, gradient steps from f = 0")
    step_size: float = Field(1.0, description="α")
    kernel: Kernel = Field("rbf", description="κ; linear descends on the parameters A themselves")
    scale: float = Field(1.0, gt=0, description="factor on x in the kernel")
    embedding: tuple[tuple[float, ...], ...] | None = Field(
        None, description="W_e, a row a class; null: one-hot, multinomial logistic regression"
    )


class FunctionalGD(Solver):
    """f(x) = Aψ(x) by K steps of gradient descent on the context's cross-entropy (eqs. 2–3).

    With the linear kernel ψ(x) = x and A (d', d) is descended on explicitly; elsewhere f is.
    """

    name = "functional-gd"
    Config = FunctionalGDSolverConfig

    def supports(self, signature: Signature, config: FunctionalGDSolverConfig) -> str | None:
        """It needs x, y and query, and an embedding of every class."""
        missing = {"x", "y", "query"} - set(getattr(signature.prompt, "_fields", ()))
        if missing:
            return f"it needs {', '.join(sorted(missing))}, which {signature.prompt.__name__} lacks"
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
        """Logits W_e f of the queries, (B, Q, C)."""
        c = self.config
        x, query = c.scale * prompt.x, c.scale * prompt.query
        one = torch.eye(self.classes, dtype=x.dtype, device=x.device)
        W = one if c.embedding is None else x.new_tensor(c.embedding)
        labels = one_hot(prompt.y, self.classes).to(x)
        if c.kernel == "linear":
            return self._on_parameters(x, query, labels, W)
        return self._on_function(x, query, labels, W)

    def _on_parameters(self, x: Tensor, query: Tensor, labels: Tensor, W: Tensor) -> Tensor:
        """A ← A + (α/N) Σᵢ W_eᵀ(onehot(yᵢ) − p(xᵢ)) xᵢᵀ (Appendix B)."""
        A = x.new_zeros(len(x), W.shape[1], x.shape[2])
        for _ in range(self.config.steps):
            wrong = labels - (x @ A.mT @ W.mT).softmax(dim=2)
            A = A + self.config.step_size / x.shape[1] * (wrong @ W).mT @ x
        return query @ A.mT @ W.mT

    def _on_function(self, x: Tensor, query: Tensor, labels: Tensor, W: Tensor) -> Tensor:
        """f(xⱼ) ← f(xⱼ) + (α/N) Σᵢ (w_yᵢ − E(w_e)|fᵢ) κ(xᵢ, xⱼ) (eq. 3)."""
        within = attention(self.config.kernel, x, x)
        across = attention(self.config.kernel, query, x)
        f = x.new_zeros(*x.shape[:2], W.shape[1])
        answer = x.new_zeros(*query.shape[:2], W.shape[1])
        for _ in range(self.config.steps):
            values = self.config.step_size * (labels - (f @ W.mT).softmax(dim=2)) @ W
            f, answer = f + within @ values, answer + across @ values
        return answer @ W.mT
