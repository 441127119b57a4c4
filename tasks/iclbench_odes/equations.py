"""The equations, and their solution by Chebyshev collocation of the integral equation.

With v the highest derivative and B the integration from 0, u = u₀ + Bv, or u₀ + B²v for the
second order, so the initial values hold exactly.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .chebyshev import integration

Equation = Literal["full", "forced", "modulated", "second-order"]

#: Steps of `iterated_solution`: the remainder falls as rᵏ/k!, where r is at most about 12.
ITERATIONS = 100


class Coefficients(NamedTuple):
    """a₁ … a₄, (B, 1, 1) each."""

    a1: Tensor
    a2: Tensor
    a3: Tensor
    a4: Tensor


def coefficients(equation: Equation, uniform: Tensor, scale: float) -> Coefficients:
    """The coefficients of numbers (B, 4) that are uniform on [−1, 1]."""
    a1, a2, a3, a4 = uniform.unsqueeze(2).unsqueeze(3).unbind(dim=1)
    around_one = equation != "second-order"
    return Coefficients(
        torch.zeros_like(a1) if equation == "modulated" else 1.0 + 0.5 * scale * a1,
        torch.zeros_like(a2)
        if equation == "forced"
        else (1.0 + 0.5 * scale * a2 if around_one else scale * a2),
        scale * a3,
        scale * a4,
    )


class Problem(NamedTuple):
    """v = (multiplier) ∘ (Bv) [+ a₃ B²v] + right, of n equations; u = u₀ + Bv or u₀ + B²v.

    multiplier and right are (B, n, N + 1), or (B, 1, N + 1) where the equations share it.
    """

    second_order: bool
    multiplier: Tensor
    a3: Tensor
    right: Tensor
    u0: Tensor


def problem_of(equation: Equation, a: Coefficients, c: Tensor, u0: Tensor) -> Problem:
    """The problems of c (B, n, N + 1) at the Chebyshev points and u0 (B, n)."""
    start = u0.unsqueeze(2)
    if equation == "second-order":
        shared = a.a2.expand(-1, 1, c.shape[2])
        return Problem(True, shared, a.a3, a.a1 * c + a.a4 + a.a3 * start, start)
    rate = a.a3.expand(-1, 1, c.shape[2]) if equation == "forced" else a.a2 * c + a.a3
    return Problem(False, rate, a.a3, a.a1 * c + a.a4 + rate * start, start)


def solution(problem: Problem) -> Tensor:
    """u (B, n, N + 1) at the Chebyshev points, by collocation."""
    b = _integration_of(problem.right)
    operator = problem.multiplier.unsqueeze(3) * b
    if problem.second_order:
        operator = operator + problem.a3.unsqueeze(3) * (b @ b)
    matrix = torch.eye(len(b)).to(b) - operator
    if problem.multiplier.shape[1] == 1:
        # One matrix for all equations of a prompt.
        v = torch.linalg.solve(matrix[:, 0], problem.right.mT).mT
    else:
        v = torch.linalg.solve(matrix, problem.right.unsqueeze(3))[..., 0]
    return _integrated(problem, v)


def iterated_solution(problem: Problem) -> Tensor:
    """The same by Picard iteration: products of matrices alone."""
    b = _integration_of(problem.right)
    v = problem.right
    for _ in range(ITERATIONS):
        first = v @ b.mT
        change = problem.multiplier * first
        if problem.second_order:
            change = change + problem.a3 * (first @ b.mT)
        v = problem.right + change
    return _integrated(problem, v)


def _integrated(problem: Problem, v: Tensor) -> Tensor:
    b = _integration_of(v)
    u = v @ b.mT
    return problem.u0 + (u @ b.mT if problem.second_order else u)


def _integration_of(values: Tensor) -> Tensor:
    return integration(values.shape[-1] - 1).to(values)
