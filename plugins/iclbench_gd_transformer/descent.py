"""Functional gradient descent on a context's cross-entropy, written out (Wang et al., 2, B)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .kernels import DEGREE, Kernel, attention, expectation, features


class Head(NamedTuple):
    """One function f_m: the inputs of its kernel, and P_m."""

    x: Tensor  # (B, N + Q, d), the context first
    project: Tensor | None = None  # (d', d'); None is the identity


def descend(
    heads: list[Head],
    w: Tensor,
    embedding: Tensor,
    steps: Tensor,
    kernel: Kernel,
    *,
    degree: int = DEGREE,
    bias: bool = False,
) -> list[tuple[Tensor, Tensor]]:
    """f and E(w_e), both (B, N + Q, d'), before the first step and after every step.

    `w` (B, N, d') holds the embeddings of the context's classes, `embedding` is W_e (C, d'), and
    `steps` (K,) or (K, B, 1, 1) holds the step sizes. Kernels with finite features ψ (linear,
    polynomial) descend on the parameters A_m, and on b_m with `bias` (Appendix B); others descend
    on f at all points (eq. 3).
    """
    infinite = features(kernel, heads[0].x[:1, :1], degree) is None
    cls = _OnFunction if infinite else _OnParameters
    functions = [cls(head, w, kernel, degree, bias) for head in heads]
    f = w.new_zeros(*heads[0].x.shape[:2], w.shape[2])
    # f = 0 before the first step, so that all classes are equally probable.
    states = [(f, expectation(f, embedding))]
    for step in steps:
        _, expected = states[-1]
        error = w - expected[:, : w.shape[1]]
        # All heads see the same error: they advance before their sum f is computed again.
        for function in functions:
            function.advance(step * error)
        f = torch.stack([function.values() for function in functions]).sum(dim=0)
        states.append((f, expectation(f, embedding)))
    return states


def stable_step(
    x: Tensor, embedding: Tensor, kernel: Kernel, *, degree: int = DEGREE, bias: bool = False
) -> Tensor:
    """The step size 1/L (B, 1, 1) for inputs x (B, N, d) of the context and W_e (C, d').

    L = ½ λmax(κ/N) λmax(W_eᵀW_e) bounds the curvature of the cross-entropy, whose second derivative
    in the logits is at most ½. No step then increases it (softmax, which is not symmetric, aside).
    """
    if kernel == "softmax":
        largest = torch.ones_like(x[:, 0, 0])
    else:
        largest = torch.linalg.eigvalsh(attention(kernel, x, x, degree=degree))[:, -1]
    # The bias adds a kernel whose only eigenvalue is 1.
    largest = largest + 1.0 if bias else largest
    largest = torch.where(largest > 0, largest, 1.0)
    squared = torch.linalg.matrix_norm(embedding, 2).square()
    step: Tensor = 2.0 / (largest * squared)
    return step[:, None, None]


class _OnParameters:
    """f_m = P_m A_m ψ(x) with A ← A + (α/N) Σᵢ (w_yᵢ − E(w_e)|fᵢ) ψ(xᵢ)ᵀ; b is a column of A."""

    def __init__(self, head: Head, w: Tensor, kernel: Kernel, degree: int, bias: bool) -> None:
        psi = features(kernel, head.x, degree)
        assert psi is not None
        ones = [torch.ones_like(psi[..., :1])] if bias else []
        self.psi, self.project = torch.cat([psi, *ones], dim=2), head.project
        self.n = w.shape[1]
        self.parameters = w.new_zeros(len(w), w.shape[2], self.psi.shape[2])

    def advance(self, error: Tensor) -> None:
        """Take one step; `error` (B, N, d') is α(w_yᵢ − E(w_e)|fᵢ)."""
        self.parameters = self.parameters + error.mT @ self.psi[:, : self.n] / self.n

    def values(self) -> Tensor:
        """f_m at all points, (B, N + Q, d')."""
        return _projected(self.psi @ self.parameters.mT, self.project)


class _OnFunction:
    """f_m(xⱼ) ← f_m(xⱼ) + (α/N) Σᵢ (w_yᵢ − E(w_e)|fᵢ) κ(xᵢ, xⱼ) at every point (eq. 3)."""

    def __init__(self, head: Head, w: Tensor, kernel: Kernel, degree: int, bias: bool) -> None:
        n = w.shape[1]
        self.weights = attention(kernel, head.x, head.x[:, :n], degree=degree)
        if bias:
            # Descending on b is a kernel that is 1 everywhere.
            self.weights = self.weights + 1.0 / n
        self.f, self.project = w.new_zeros(*head.x.shape[:2], w.shape[2]), head.project

    def advance(self, error: Tensor) -> None:
        """See `_OnParameters.advance`."""
        self.f = self.f + self.weights @ error

    def values(self) -> Tensor:
        """See `_OnParameters.values`."""
        return _projected(self.f, self.project)


def _projected(f: Tensor, project: Tensor | None) -> Tensor:
    return f if project is None else f @ project.mT
