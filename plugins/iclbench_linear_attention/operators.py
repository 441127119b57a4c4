"""The paper's operators as pure functions: LSA, ELSA, and mask-and-move.

The input matrix H is (..., m, n) with any batch dimensions. Weights (..., n, n) act on its columns;
biases have its shape. Ranges are (start, stop), counted from 0 as in Python. They are the reference
with which tests compare the modules; models run those.
"""

from __future__ import annotations

import torch
from torch import Tensor

Range = tuple[int, int]
Affine = tuple[Tensor, Tensor]
Parameters = tuple[Affine, Affine, Affine]


def attend(left: Tensor, middle: Tensor, right: Tensor, causal: bool = False) -> Tensor:
    """Return left middleᵀ right, all (..., m, n), by the cheaper order of association.

    If causal, row t of the result depends on rows up to t only.
    """
    # The mask lies between the two products, so only this order of association is possible.
    if causal:
        return (left @ middle.mT).tril() @ right
    m, n = left.shape[-2:]
    # This order takes 2m²n multiply-adds, the other 2mn².
    if m <= n:
        return (left @ middle.mT) @ right
    return left @ (middle.mT @ right)


def lsa(H: Tensor, W1: Tensor, W2: Tensor, W3: Tensor) -> Tensor:
    """Return linear self-attention (HW₃)(HW₁)ᵀ(HW₂), (..., m, n) (Hagiwara, eq. 8)."""
    return attend(H @ W3, H @ W1, H @ W2)


def elsa(H: Tensor, first: Affine, second: Affine, third: Affine) -> Tensor:
    """Return (HW₃+B₃)(HW₁+B₁)ᵀ(HW₂+B₂), (..., m, n), from pairs (W, B) (Hagiwara, eq. 16)."""
    (W1, B1), (W2, B2), (W3, B3) = first, second, third
    return attend(H @ W3 + B3, H @ W1 + B1, H @ W2 + B2)


def move(n: int, columns: Range, right: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return V (n, n) such that AV holds `columns` of A moved `right`, else 0 (Hagiwara, eq. 4).

    Raises ValueError for columns that do not exist or would leave the matrix.
    """
    start, stop = columns
    if not (0 <= start <= stop <= n and start + right >= 0 and stop + right <= n):
        raise ValueError(f"columns {start}:{stop} moved by {right} are not within 0:{n}")
    V = torch.zeros(n, n, dtype=dtype)
    index = torch.arange(start, stop)
    # V multiplies from the right: column j of AV is column i of A where V[i, j] = 1.
    V[index, index + right] = 1.0
    return V


def mask_and_move_matrices(
    shape: tuple[int, int], rows: Range, columns: Range, down: int, right: int
) -> tuple[Tensor, Tensor]:
    """Return W (m, m) and V (n, n) with mask_and_move(A) = WAV (elsa, Property 1).

    `shape` is that of A. Raises ValueError for a block that does not exist or would leave the
    matrix.
    """
    m, n = shape
    # W multiplies from the left, where the transpose of a column move moves rows.
    return move(m, rows, down).T, move(n, columns, right)


def mask_and_move(A: Tensor, rows: Range, columns: Range, down: int, right: int) -> Tensor:
    """Move the block A[rows, columns] of A (..., m, n) and set the rest to 0 (Hagiwara, eq. 5).

    Raises ValueError for a block that does not exist or would leave the matrix.
    """
    m, n = A.shape[-2:]
    W, V = mask_and_move_matrices((m, n), rows, columns, down, right)
    return W.to(A) @ A @ V.to(A)
