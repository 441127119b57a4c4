"""Parameters with which one ELSA computes Properties 2, 3 and 4 of the paper exactly.

Each function returns the pairs (W₁, B₁), (W₂, B₂), (W₃, B₃) for `operators.elsa`. Tests check the
properties; models use the identity.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .operators import Affine, Parameters, move


def constant(C: Tensor) -> Parameters:
    """Return the constant C (m, n) for every input (Property 2, eqs. 17–18)."""
    m, n = C.shape
    unit = _bias_only(torch.eye(m, n, dtype=C.dtype))
    # EEᵀC = C for E = eye(m, n) needs m ≤ n; CEᵀE = C needs m ≥ n.
    if m < n:
        return unit, _bias_only(C), unit
    return unit, unit, _bias_only(C)


def identity(m: int, n: int, dtype: torch.dtype | None = None) -> Parameters:
    """Return the input (m, n), as a skip connection does (Property 3, eqs. 19–20)."""
    unit = _bias_only(torch.eye(m, n, dtype=dtype))
    input_itself = _weight_only(m, torch.eye(n, dtype=dtype))
    return (unit, input_itself, unit) if m < n else (unit, unit, input_itself)


def transposed_product(r: int, s: int, t: int, dtype: torch.dtype | None = None) -> Parameters:
    """Write AB to [0:r, r:r+t] for H = [[Aᵀ, B], [0, 0]] (Property 4, eqs. 21–25).

    A is (r, s), B is (s, t) and H is (s+r, r+t).
    """
    m, n = s + r, r + t
    first = _weight_only(m, move(n, (0, r), 0, dtype))
    # B lies in columns r:r+t of H and AB belongs there too, so neither W moves anything.
    second = _weight_only(m, move(n, (r, r + t), 0, dtype))
    # AB lies in the first r rows of W₁ᵀHᵀHW₂; B₃ copies these rows to the output (eq. 24).
    return first, second, _bias_only(_embedded(m, n, 0, 0, torch.eye(r, dtype=dtype)))


def block_product(r: int, s: int, t: int, dtype: torch.dtype | None = None) -> Parameters:
    """Write AB to [0:r, s:s+t] for H = [[A, 0], [0, B]] (Property 4, eqs. 26–30).

    A is (r, s), B is (s, t) and H is (r+s, s+t).
    """
    m, n = r + s, s + t
    # HW₃ has A in its last s columns, HW₂ has B in its last s rows; B₁ pairs them (eq. 29).
    first = _bias_only(_embedded(m, n, r, t, torch.eye(s, dtype=dtype)))
    second = _weight_only(m, move(n, (s, s + t), 0, dtype))
    return first, second, _weight_only(m, move(n, (0, s), t, dtype))


def _embedded(m: int, n: int, row: int, column: int, block: Tensor) -> Tensor:
    """Return zeros (m, n) with `block` at [row, column]."""
    B = torch.zeros(m, n, dtype=block.dtype)
    B[row : row + block.shape[0], column : column + block.shape[1]] = block
    return B


def _bias_only(B: Tensor) -> Affine:
    """Return the affine map whose value is B for every input."""
    n = B.shape[1]
    return torch.zeros(n, n, dtype=B.dtype), B


def _weight_only(m: int, W: Tensor) -> Affine:
    """Return the affine map H ↦ HW for H with m rows."""
    return W, torch.zeros(m, len(W), dtype=W.dtype)
