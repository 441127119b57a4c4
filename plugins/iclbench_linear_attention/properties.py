"""What one ELSA can compute exactly: Properties 2, 3 and 4 of the paper as parameters.

Each function returns the pairs (W₁, B₁), (W₂, B₂), (W₃, B₃) of `operators.elsa`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .operators import Affine, Parameters, move


def constant(C: Tensor) -> Parameters:
    """The constant matrix C (m, n), whatever the input (Property 2, eqs. 17–18)."""
    m, n = C.shape
    unit = _bias_only(_unit(m, n, C.dtype))
    if m < n:
        return unit, _bias_only(C), unit
    return unit, unit, _bias_only(C)


def identity(m: int, n: int, dtype: torch.dtype | None = None) -> Parameters:
    """The input itself, (m, n): a skip connection (Property 3, eqs. 19–20)."""
    unit = _bias_only(_unit(m, n, dtype))
    whole = _weight_only(m, torch.eye(n, dtype=dtype))
    return (unit, whole, unit) if m < n else (unit, unit, whole)


def transposed_product(r: int, s: int, t: int, dtype: torch.dtype | None = None) -> Parameters:
    """AB at [0:r, r:r+t], from H = [[Aᵀ, B], [0, 0]], (s+r, r+t) (Property 4, eqs. 21–25).

    A is (r, s) and B is (s, t).
    """
    m, n = s + r, r + t
    first = _weight_only(m, move(n, (0, r), 0, dtype))
    second = _weight_only(m, move(n, (r, r + t), 0, dtype))
    return first, second, _bias_only(_placed(m, n, 0, 0, torch.eye(r, dtype=dtype)))


def block_product(r: int, s: int, t: int, dtype: torch.dtype | None = None) -> Parameters:
    """AB at [0:r, s:s+t], from H = [[A, 0], [0, B]], (r+s, s+t) (Property 4, eqs. 26–30).

    A is (r, s) and B is (s, t).
    """
    m, n = r + s, s + t
    first = _bias_only(_placed(m, n, r, t, torch.eye(s, dtype=dtype)))
    second = _weight_only(m, move(n, (s, s + t), 0, dtype))
    return first, second, _weight_only(m, move(n, (0, s), t, dtype))


def _unit(m: int, n: int, dtype: torch.dtype | None) -> Tensor:
    """Ones on the main diagonal of (m, n)."""
    return torch.eye(m, n, dtype=dtype)


def _placed(m: int, n: int, row: int, column: int, block: Tensor) -> Tensor:
    """Zeros (m, n) with `block` at that place."""
    B = torch.zeros(m, n, dtype=block.dtype)
    B[row : row + block.shape[0], column : column + block.shape[1]] = block
    return B


def _bias_only(B: Tensor) -> Affine:
    n = B.shape[1]
    return torch.zeros(n, n, dtype=B.dtype), B


def _weight_only(m: int, W: Tensor) -> Affine:
    return W, torch.zeros(m, len(W), dtype=W.dtype)
