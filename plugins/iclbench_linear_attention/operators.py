"""The operators of the paper as pure functions: LSA, ELSA, mask and move.

H is the input matrix (..., m, n) with any leading batch dimensions; weights (..., n, n) act on its
columns and biases have its shape. Index ranges are Python's: (start, stop), from 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

Range = tuple[int, int]
Affine = tuple[Tensor, Tensor]
Parameters = tuple[Affine, Affine, Affine]


def attend(left: Tensor, middle: Tensor, right: Tensor, causal: bool = False) -> Tensor:
    """left middleᵀ right, all (..., m, n), through the smaller inner product, m × m or n × n.

    Causal: row t of the result is made of rows up to t alone.
    """
    if causal:
        return (left @ middle.mT).tril() @ right
    m, n = left.shape[-2:]
    if m <= n:
        return (left @ middle.mT) @ right
    return left @ (middle.mT @ right)


def lsa(H: Tensor, W1: Tensor, W2: Tensor, W3: Tensor) -> Tensor:
    """(HW₃)(HW₁)ᵀ(HW₂), (..., m, n): linear self-attention (elsa, eq. 8)."""
    return attend(H @ W3, H @ W1, H @ W2)


def elsa(H: Tensor, first: Affine, second: Affine, third: Affine) -> Tensor:
    """(HW₃+B₃)(HW₁+B₁)ᵀ(HW₂+B₂), (..., m, n), of pairs (W, B) (elsa, eq. 16)."""
    (W1, B1), (W2, B2), (W3, B3) = first, second, third
    return attend(H @ W3 + B3, H @ W1 + B1, H @ W2 + B2)


def move(n: int, columns: Range, right: int, dtype: torch.dtype | None = None) -> Tensor:
    """V (n, n): AV holds `columns` of A moved `right`, and zeros elsewhere (elsa, eq. 4).

    Raises ValueError for columns that are not there, or would be moved outside.
    """
    start, stop = columns
    if not (0 <= start <= stop <= n and start + right >= 0 and stop + right <= n):
        raise ValueError(f"columns {start}:{stop} moved by {right} are not within 0:{n}")
    V = torch.zeros(n, n, dtype=dtype)
    index = torch.arange(start, stop)
    V[index, index + right] = 1.0
    return V


def mask_and_move_matrices(
    shape: tuple[int, int], rows: Range, columns: Range, down: int, right: int
) -> tuple[Tensor, Tensor]:
    """W (m, m) and V (n, n) such that mask_and_move(A) = WAV, A of `shape` (elsa, Property 1).

    Raises ValueError for a block that is not there, or would be moved outside.
    """
    m, n = shape
    return move(m, rows, down).T, move(n, columns, right)


def mask_and_move(A: Tensor, rows: Range, columns: Range, down: int, right: int) -> Tensor:
    """A (..., m, n) with the block A[rows, columns] moved and zeros elsewhere (elsa, eq. 5).

    Raises ValueError for a block that is not there, or would be moved outside.
    """
    m, n = A.shape[-2:]
    W, V = mask_and_move_matrices((m, n), rows, columns, down, right)
    return W.to(A) @ A @ V.to(A)
