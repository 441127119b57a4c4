"""Gaussian elimination from network components: ReLU networks, masks, matrix products (elsa, A).

A system Fx = α of m equations is the matrix P = [F α; 0 0], (B, m+1, m+1). There is no pivoting.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from iclbench import Config, Signature, Solver, UsageError, report

#: Values that the ReLU network holds at once: bounds the memory of many prompts and knots.
UNITS_AT_ONCE = 2**24


class InverseSquare(nn.Module):
    """σ_invsqr(x) ≈ 1/x², linear between the knots, as a ReLU network (elsa, A.3).

    The paper's hard sigmoids, two units a knot for each sign, are merged: units with one kink are
    one unit, and the sign is removed by |x| = σ(x) + σ(−x). It is the same function with a quarter
    of the units, and for |x| ≥ x₁ a sum of positive terms alone, which loses no digits.
    """

    knots: Tensor
    slopes: Tensor

    def __init__(self, knots: Tensor) -> None:
        """`knots` (n,) are x₁ < … < x_n, positive; x_{n+1} follows at their last ratio.

        Raises UsageError where the default dtype can't tell them apart or can't hold 1/x₁².
        """
        super().__init__()
        end = knots[-1:] * (knots[-1] / knots[-2])
        dtype = torch.get_default_dtype()
        x = torch.cat([knots, end]).to(dtype)
        if not (x[1:] > x[:-1]).all() or not torch.isfinite(x[:1] ** -2 / (x[1] - x[0])):
            raise UsageError(
                f"{len(knots)} knots from {float(knots[0]):g} to {float(knots[-1]):g} are too "
                f"close or too small for {str(dtype).removeprefix('torch.')}"
            )
        exact = x.double()
        y = torch.cat([exact[:-1] ** -2, torch.zeros(1, dtype=torch.float64)])
        steepness = (y[:-1] - y[1:]) / (exact[1:] - exact[:-1])
        # At x₁ the slope becomes 0, which keeps y₁ below it.
        before = torch.cat([torch.zeros(1, dtype=torch.float64), steepness])
        after = torch.cat([steepness, torch.zeros(1, dtype=torch.float64)])
        self.register_buffer("knots", x)
        self.register_buffer("slopes", (before - after).to(x))

    def forward(self, x: Tensor) -> Tensor:
        """σ_invsqr of every element of x (B,)."""
        size = x.relu() + (-x).relu()
        rows = max(1, UNITS_AT_ONCE // len(self.knots))
        parts = [
            (self.knots - part[:, None]).relu() @ self.slopes for part in torch.split(size, rows)
        ]
        return torch.cat(parts)

    def outside(self, x: Tensor) -> Tensor:
        """Whether x (B,) is where the network is no approximation: |x| < x₁, |x| > x_n, or NaN."""
        return ~((x.abs() >= self.knots[0]) & (x.abs() <= self.knots[-2]))


class Elimination(nn.Module):
    """Forward elimination and back substitution with divisions by `InverseSquare`."""

    def __init__(self, knots: Tensor) -> None:
        super().__init__()
        self.inverse_square = InverseSquare(knots)

    def forward(self, F: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, m) with Fx = a from F (B, m, m), a (B, m), and which had a pivot outside, (B,)."""
        m = F.shape[1]
        P = nn.functional.pad(torch.cat([F, a[..., None]], dim=2), (0, 0, 0, 1))
        outside = torch.zeros(len(F), dtype=torch.bool, device=F.device)
        for k in range(m - 1):
            outside |= self.inverse_square.outside(P[:, k, k])
            P = self.eliminate(P, k)
        outside |= self.inverse_square.outside(P[:, m - 1, m - 1])
        P = self.divide(P, m - 1)
        for t in range(m - 1, 0, -1):
            P = self.divide(substitute(P, t), t - 1)
        return P[:, :m, m], outside

    def inverse(self, P: Tensor, k: int) -> Tensor:
        """1/P[k, k] at (k, k), zeros elsewhere: Z⁽¹⁾Z⁽²⁾ (eqs. 120–121, 127–128, 142–144)."""
        pivot = _mask(P, slice(k, k + 1), slice(k, k + 1)) * P
        # Elsewhere the component is the identity of 0.
        squared = torch.zeros_like(P)
        squared[:, k, k] = self.inverse_square(P[:, k, k])
        return pivot @ squared

    def eliminate(self, P: Tensor, k: int) -> Tensor:
        """FE_k: subtract multiples of row k from the rows below (eqs. 122–132)."""
        below = _mask(P, slice(k + 1, P.shape[1] - 1), slice(k, k + 1))
        multipliers = (below * P) @ -self.inverse(P, k) + _identity(P)
        return multipliers @ P

    def divide(self, Q: Tensor, k: int) -> Tensor:
        """Divide row k by its pivot, and drop that (eqs. 142–146).

        The minus sign of eq. 137 contradicts eq. 138; eqs. 145 and 155 have none.
        """
        pivot = _mask(Q, slice(k, k + 1), slice(k, k + 1))
        scaling = self.inverse(Q, k) + _identity(Q) * (1.0 - pivot)
        return (1.0 - pivot) * (scaling @ Q)


def substitute(Q: Tensor, t: int) -> Tensor:
    """Insert ξ_t, found at [t, m], into the equations above (eqs. 139–141, 150–151)."""
    m = Q.shape[1] - 1
    found = torch.zeros_like(Q)
    found[:, t, m] = Q[:, t, m]
    return Q @ (_identity(Q) - found)


def geometric_knots(low: float, high: float, count: int) -> Tensor:
    """`count` knots from low to high, each in the same ratio to the one before, in float64."""
    exponents = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    return low * (high / low) ** exponents


def _identity(P: Tensor) -> Tensor:
    return torch.eye(P.shape[1], dtype=P.dtype, device=P.device)


def _mask(P: Tensor, rows: slice, columns: slice) -> Tensor:
    """Ones at [rows, columns], zeros elsewhere, (m+1, m+1) (A.2.2)."""
    mask = torch.zeros(P.shape[1:], dtype=P.dtype, device=P.device)
    mask[rows, columns] = 1.0
    return mask


class EliminationConfig(Config):
    """The knots of 1/x²: their number, and the pivots that they serve."""

    knots: int = Field(30_000, ge=2, description="number of knots, in geometric spacing")
    low: float = Field(1e-2, gt=0, description="smallest pivot, in absolute value")
    high: float = Field(1e3, gt=0, description="largest pivot, in absolute value")

    @model_validator(mode="after")
    def _low_is_below_high(self) -> EliminationConfig:
        if self.low >= self.high:
            raise ValueError("low must be less than high")
        return self


class GaussianEliminationNetwork(Solver):
    """Solves linear systems, and ridge's normal equations, by `Elimination`.

    A prompt whose pivots leave the knots' range is reported, and its answer is NaN.
    """

    name = "gaussian-elimination-network"
    Config = EliminationConfig

    def supports(self, signature: Signature, config: EliminationConfig) -> str | None:
        """A system (fields a, b) for its solution, or examples (x, y) for a query or weights."""
        fields = set(getattr(signature.prompt, "_fields", ()))
        name, target = signature.prompt.__name__, signature.target
        if {"a", "b"} <= fields:
            return (
                None if target == "solution" else f"of a system it answers solution, not {target}"
            )
        if not {"x", "y", "query"} <= fields:
            return f"it needs a and b, or x, y and query, which {name} does not have"
        if target not in {"query", "weights"}:
            return f"of examples it answers query and weights, not {target}"
        return None if signature.output_width == 1 or target == "weights" else "it has one output"

    def build(self, signature: Signature, config: EliminationConfig) -> nn.Module:
        """A module without parameters: prompt → prediction."""
        knots = geometric_knots(config.low, config.high, config.knots)
        return _Answer(Elimination(knots), signature.target)


class _Answer(nn.Module):
    def __init__(self, elimination: Elimination, target: str) -> None:
        super().__init__()
        self.elimination, self.target = elimination, target

    def forward(self, prompt: Any) -> Tensor:
        if self.target == "solution":
            return self._solve(prompt.a, prompt.b)[:, None]
        x: Tensor = prompt.x
        y: Tensor = prompt.y[..., 0]
        gram = x.mT @ x
        if hasattr(prompt, "ridge"):
            gram = gram + prompt.ridge[:, None, None] * _identity(gram)
        w = self._solve(gram, (x.mT @ y[..., None])[..., 0])[:, None]
        query: Tensor = prompt.query
        return w if self.target == "weights" else query @ w.mT

    def _solve(self, F: Tensor, a: Tensor) -> Tensor:
        solution, outside = self.elimination(F, a)
        if outside.any():
            knots = self.elimination.inverse_square.knots
            report(
                f"gaussian-elimination-network: {int(outside.sum())} of {len(F)} prompts have a "
                f"pivot outside {float(knots[0]):g} … {float(knots[-2]):g}; their answers are NaN"
            )
        answers: Tensor = solution.masked_fill(outside[:, None], torch.nan)
        return answers
