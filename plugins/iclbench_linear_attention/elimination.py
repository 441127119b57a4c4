"""Gaussian elimination from ReLU networks, masks and matrix products (Hagiwara, Appendix A).

The matrix P = [F α; 0 0], (B, m+1, m+1), holds a system Fx = α of m equations. Rows are not
exchanged, so pivots must not be small.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from iclbench import Config, LinearSystem, Signature, Solver, UsageError, report

#: Units whose terms are added in one product.
BLOCK = 256
#: Largest number of activations and sums of blocks held at once, which bounds memory.
MAX_ACTIVATIONS = 2**24


class InverseSquare(nn.Module):
    """A ReLU network σ_invsqr(x) ≈ 1/x² that is linear between its knots (Hagiwara, A.3).

    The paper uses hard sigmoids, two units per knot and sign. Here units with the same kink are
    merged, and |x| = σ(x) + σ(−x) removes the sign. The function is the same with a quarter of the
    units. For |x| ≥ x₁ it is a sum of positive terms, so no digits cancel.

    The paper leaves open where the function reaches 0 beyond the last knot. Here that is at 2x_n:
    a nearer one needs a negative weight at x_n, whose cancellation costs up to two digits.
    """

    knots: Tensor
    slopes: Tensor

    def __init__(self, knots: Tensor) -> None:
        """Create the network for positive knots x₁ < … < x_n, (n,).

        A last knot x_{n+1} = 2x_n is added, at which the function reaches 0. Raises UsageError if
        the default dtype can't distinguish the knots or can't represent 1/x₁².
        """
        super().__init__()
        # Beyond it the function is 0 (eq. 118).
        last = 2.0 * knots[-1:]
        dtype = torch.get_default_dtype()
        x = torch.cat([knots, last]).to(dtype)
        # The quotient bounds the first slope, which is the steepest for geometric knots.
        if not (x[1:] > x[:-1]).all() or not torch.isfinite(x[:1] ** -2 / (x[1] - x[0])):
            raise UsageError(
                f"{len(knots)} knots from {float(knots[0]):g} to {float(knots[-1]):g} are too "
                f"close together or too small for {str(dtype).removeprefix('torch.')}"
            )
        # Slopes of the rounded knots, in float64: differences of close values would cancel.
        rounded = x.double()
        zero = torch.zeros(1, dtype=torch.float64)
        y = torch.cat([rounded[:-1] ** -2, zero])
        descent = (y[:-1] - y[1:]) / (rounded[1:] - rounded[:-1])
        # A unit's weight is the change of slope at its knot. Below x₁ the function is constant.
        left, right = torch.cat([zero, descent]), torch.cat([descent, zero])
        self.register_buffer("knots", x)
        self.register_buffer("slopes", (left - right).to(x))

    def forward(self, x: Tensor) -> Tensor:
        """Return σ_invsqr of every element of x (B,)."""
        magnitude = x.relu() + (-x).relu()
        chunk_size = max(1, MAX_ACTIVATIONS // (BLOCK + len(self.knots) // BLOCK))
        chunks = torch.split(magnitude, chunk_size)
        return torch.cat([self._output(chunk) for chunk in chunks])

    def _output(self, x: Tensor) -> Tensor:
        # One product of 30,000 terms loses a digit in float32, and how depends on the processor.
        blocks = zip(torch.split(self.knots, BLOCK), torch.split(self.slopes, BLOCK), strict=True)
        parts = [(knots - x[:, None]).relu() @ slopes for knots, slopes in blocks]
        total: Tensor = torch.stack(parts).sum(dim=0)
        return total

    def outside(self, x: Tensor) -> Tensor:
        """Whether the network does not approximate 1/x²: |x| < x₁, |x| > x_n or NaN, (B,)."""
        # Negated, so that NaN, for which every comparison is false, counts as outside.
        # The last knot is excluded: there the function is 0 and not 1/x².
        return ~((x.abs() >= self.knots[0]) & (x.abs() <= self.knots[-2]))


class Elimination(nn.Module):
    """Forward elimination and back substitution that divide by means of `InverseSquare`."""

    def __init__(self, knots: Tensor) -> None:
        super().__init__()
        self.inverse_square = InverseSquare(knots)

    def forward(self, F: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        """Return x (B, m) with Fx = a, and whether any pivot was outside the knots' range, (B,).

        F is (B, m, m) and a (B, m).
        """
        m = F.shape[1]
        # The row of zeros makes P square, so that all matrices of a module multiply (eq. 119).
        P = nn.functional.pad(torch.cat([F, a[..., None]], dim=2), (0, 0, 0, 1))
        outside = torch.zeros(len(F), dtype=torch.bool, device=F.device)
        for k in range(m - 1):
            outside |= self.inverse_square.outside(P[:, k, k])
            P = self.eliminate(P, k)
        outside |= self.inverse_square.outside(P[:, m - 1, m - 1])
        P = self.divide(P, m - 1)
        # These pivots were checked above, and nothing has changed them since.
        for t in range(m - 1, 0, -1):
            P = self.divide(substitute(P, t), t - 1)
        return P[:, :m, m], outside

    def inverse(self, P: Tensor, k: int) -> Tensor:
        """Return 1/P[k, k] at (k, k) and 0 elsewhere: Z⁽¹⁾Z⁽²⁾ (eqs. 120–121, 127–128, 142–144)."""
        pivot = _mask(P, slice(k, k + 1), slice(k, k + 1)) * P
        # The network acts on this cell only; all other cells pass their zeros on unchanged.
        inverse_square = torch.zeros_like(P)
        inverse_square[:, k, k] = self.inverse_square(P[:, k, k])
        return pivot @ inverse_square

    def eliminate(self, P: Tensor, k: int) -> Tensor:
        """Subtract multiples of row k from the rows below: FE_k (eqs. 122–132)."""
        below = _mask(P, slice(k + 1, P.shape[1] - 1), slice(k, k + 1))
        # The identity keeps all rows; the product subtracts γᵢ times row k from each row below.
        multipliers = (below * P) @ -self.inverse(P, k) + _identity(P)
        return multipliers @ P

    def divide(self, Q: Tensor, k: int) -> Tensor:
        """Divide row k by its pivot, then set the pivot to 0 (eqs. 142–146).

        The minus sign of eq. 137 contradicts eq. 138 and is left out, as in eqs. 145 and 155.
        """
        pivot = _mask(Q, slice(k, k + 1), slice(k, k + 1))
        # Row k of the identity is replaced by 1/pivot, all others stay (eq. 145).
        scaling = self.inverse(Q, k) + _identity(Q) * (1.0 - pivot)
        # Were the pivot left at 1, `substitute` would subtract ξ from itself (below eq. 138).
        return (1.0 - pivot) * (scaling @ Q)


def substitute(Q: Tensor, t: int) -> Tensor:
    """Insert the solved ξ_t = Q[t, m] into the equations above (eqs. 139–141, 150–151)."""
    m = Q.shape[1] - 1
    entry = torch.zeros_like(Q)
    entry[:, t, m] = Q[:, t, m]
    return Q @ (_identity(Q) - entry)


def geometric_knots(low: float, high: float, count: int) -> Tensor:
    """Return `count` knots from low to high with a constant ratio, in float64."""
    # In float64: `InverseSquare` rounds each knot once and rejects knots that then coincide.
    exponents = torch.linspace(0.0, 1.0, count, dtype=torch.float64)
    return low * (high / low) ** exponents


def _identity(P: Tensor) -> Tensor:
    return torch.eye(P.shape[1], dtype=P.dtype, device=P.device)


def _mask(P: Tensor, rows: slice, columns: slice) -> Tensor:
    """Return a matrix (m+1, m+1) of ones at [rows, columns] and zeros elsewhere (A.2.2)."""
    mask = torch.zeros(P.shape[1:], dtype=P.dtype, device=P.device)
    mask[rows, columns] = 1.0
    return mask


class EliminationConfig(Config):
    """The number of knots of 1/x², and the range of pivots that they cover."""

    knots: int = Field(
        30_000,
        ge=2,
        description="number of knots of the approximation of 1/x², geometrically spaced",
    )
    low: float = Field(1e-2, gt=0, description="smallest magnitude of a pivot that the knots cover")
    high: float = Field(1e3, gt=0, description="largest magnitude of a pivot that the knots cover")

    @model_validator(mode="after")
    def _low_is_below_high(self) -> EliminationConfig:
        if self.low >= self.high:
            raise ValueError("low must be less than high")
        return self


class GaussianEliminationNetwork(Solver):
    """Solves linear systems, and the normal equations of ridge regression, by `Elimination`.

    A prompt with a pivot outside the knots' range is reported and answered with NaN.
    """

    name = "gaussian-elimination-network"
    Config = EliminationConfig

    def supports(self, signature: Signature, config: EliminationConfig) -> str | None:
        """Support systems (a, b) that ask for the solution, and examples for a query or weights."""
        fields = set(getattr(signature.prompt, "_fields", ()))
        target = signature.target
        if {"a", "b"} <= fields:
            solves = target == "solution"
            return None if solves else f"for systems it answers solution, not {target}"
        if not {"x", "y", "query"} <= fields:
            return "it needs a and b, or x, y and query, which the task's prompts lack"
        if target not in {"query", "weights"}:
            return f"for examples it answers query or weights, not {target}"
        if target == "query" and signature.output_width != 1:
            return "it predicts one value"
        return None

    def build(self, signature: Signature, config: EliminationConfig) -> nn.Module:
        """Return a module without parameters that maps a prompt to a prediction (B, 1, W)."""
        knots = geometric_knots(config.low, config.high, config.knots)
        return _Solve(Elimination(knots), signature.target)


class _Solve(nn.Module):
    """Poses the prompt's system and answers its target."""

    def __init__(self, elimination: Elimination, target: str) -> None:
        super().__init__()
        self.elimination, self.target = elimination, target

    def forward(self, prompt: Any) -> Tensor:
        if self.target == "solution":
            a: Tensor = prompt.a
            if hasattr(prompt, "size"):
                # The zeros of padding would be pivots outside the knots' range.
                a = LinearSystem.fill_padding(a, prompt.size)
            return self._solve(a, prompt.b)[:, None]
        x: Tensor = prompt.x
        y: Tensor = prompt.y[..., 0]
        # Positive definite (with λ > 0 or full rank), so pivots are positive without row exchanges.
        gram = x.mT @ x
        if hasattr(prompt, "ridge"):
            gram = gram + prompt.ridge[:, None, None] * _identity(gram)
        moment = (x.mT @ y[..., None])[..., 0]
        weights = self._solve(gram, moment)[:, None]
        query: Tensor = prompt.query
        return weights if self.target == "weights" else query @ weights.mT

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
