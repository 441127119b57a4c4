"""Functional gradient descent on each context's cross-entropy, written out (categorical, 2, B)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .kernels import DEGREE, Kernel, attention, expectation, features


class Head(NamedTuple):
    """One function f_m: its kernel's inputs, contexts first, and P_m (None: the identity)."""

    x: Tensor  # (B, N + Q, d)
    project: Tensor | None = None  # (d', d')


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
    """f and E(w_e), each (B, N + Q, d'), before and after every step of the sizes `steps`.

    w (B, N, d') are the embeddings of the context's classes, `embedding` is W_e (C, d'). Where ψ is
    finite (linear, polynomial) the parameters A_m, and b with `bias`, are descended on (Appendix
    B); elsewhere f is, at all points (eq. 3).
    """
    kind = _OnFunction if features(kernel, heads[0].x[:1, :1], degree) is None else _OnParameters
    functions = [kind(head, w, kernel, degree, bias) for head in heads]
    f = w.new_zeros(*heads[0].x.shape[:2], w.shape[2])
    found = [(f, expectation(f, embedding))]
    for step in steps:
        wrong = w - found[-1][1][:, : w.shape[1]]
        for function in functions:
            function.advance(step * wrong)
        f = torch.stack([function.values() for function in functions]).sum(dim=0)
        found.append((f, expectation(f, embedding)))
    return found


class _OnParameters:
    """f_m = P_m A_m ψ(x): A ← A + (α/N) Σᵢ (w_yᵢ − E(w_e)|fᵢ) ψ(xᵢ)ᵀ; b is A's last column."""

    def __init__(self, head: Head, w: Tensor, kernel: Kernel, degree: int, bias: bool) -> None:
        found = features(kernel, head.x, degree)
        assert found is not None
        ones = [torch.ones_like(found[..., :1])] if bias else []
        self.psi, self.project = torch.cat([found, *ones], dim=2), head.project
        self.n = w.shape[1]
        self.parameters = w.new_zeros(len(w), w.shape[2], self.psi.shape[2])

    def advance(self, wrong: Tensor) -> None:
        self.parameters = self.parameters + wrong.mT @ self.psi[:, : self.n] / self.n

    def values(self) -> Tensor:
        return _projected(self.psi @ self.parameters.mT, self.project)


class _OnFunction:
    """f_m(xⱼ) ← f_m(xⱼ) + (α/N) Σᵢ (w_yᵢ − E(w_e)|fᵢ) κ(xᵢ, xⱼ) at every point (eq. 3)."""

    def __init__(self, head: Head, w: Tensor, kernel: Kernel, degree: int, bias: bool) -> None:
        n = w.shape[1]
        self.weights = attention(kernel, head.x, head.x[:, :n], degree=degree)
        if bias:
            self.weights = self.weights + 1.0 / n
        self.f, self.project = w.new_zeros(*head.x.shape[:2], w.shape[2]), head.project

    def advance(self, wrong: Tensor) -> None:
        self.f = self.f + self.weights @ wrong

    def values(self) -> Tensor:
        return _projected(self.f, self.project)


def _projected(f: Tensor, project: Tensor | None) -> Tensor:
    return f if project is None else f @ project.mT
