"""Exact answers: arithmetic on the numbers of a prompt, rounded once to float64.

Up to LARGEST unknowns, python-flint's ball arithmetic proves every rounding: the precision grows
until both ends of each ball round to one number. Larger systems are refined with residuals in
twice float64's precision.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import torch
from flint import arb_mat, ctx
from torch import Tensor

#: Ball arithmetic takes about a second for one system of 256 unknowns.
LARGEST = 32
#: Precisions in bits, tried in order. Above 10 bits per unknown, flint solves by plain elimination,
#: which is three times as fast.
PRECISIONS = (384, 768, 1536, 3072)
#: Half the distance from 1 to the next float64.
ROUNDING = 2.0**-53
#: A refinement multiplies the error by about ROUNDING times the condition number, so that 30 are
#: enough up to 10¹⁴. They end early where the error is this small, relative to the largest entry.
REFINEMENTS = 30
REFINED = 2.0**-100


def evaluate_exactly(function: Callable[..., arb_mat], *fields: Tensor) -> Tensor:
    """`function` of the matrices of each prompt, every entry rounded once: (B, m, n), float64.

    Each field is (B, rows, columns). `function` gets one `flint.arb_mat` per field and may add,
    multiply, divide, transpose and solve. A prompt gets NaN if `function` divides by zero, or by a
    number that can't be told from zero at the highest precision. Raises ValueError if all do.
    """
    arrays = [field.detach().to("cpu", torch.float64).numpy() for field in fields]
    results = [
        _rounded(function, [arb_mat(matrix.tolist()) for matrix in rows])
        for rows in zip(*arrays, strict=True)
    ]
    shape = next((result.shape for result in results if result is not None), None)
    if shape is None:
        raise ValueError("the exact answer is not defined for any of the prompts")
    stacked = [np.full(shape, np.nan) if result is None else result for result in results]
    return torch.from_numpy(np.stack(stacked))


def _rounded(function: Callable[..., arb_mat], matrices: list[arb_mat]) -> np.ndarray | None:
    """The entries of `function` of exact matrices, rounded once; None if it divides by zero."""
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            try:
                result = function(*matrices)
            except ZeroDivisionError:
                continue
            entries = result.entries()
            low = np.array([float(entry.lower()) for entry in entries])
            high = np.array([float(entry.upper()) for entry in entries])
        # At the last precision, a ball that spans two neighbours holds the number between them.
        last = precision == PRECISIONS[-1] and (high <= np.nextafter(low, np.inf)).all()
        if last or np.array_equal(low, high):
            even = (low.view(np.int64) & 1) == 0
            return np.where(even, low, high).reshape(result.nrows(), result.ncols())
    return None


def exact_matmul(a: Tensor, b: Tensor) -> Tensor:
    """a (B, m, n) @ b (B, n, k) for the given numbers, every entry rounded once to float64."""
    a, b = (t.detach().to("cpu", torch.float64) for t in (a, b))
    high, low, lost = _double_matmul(a, b)
    # The bound of Ogita, Rump and Oishi (2005) on the error of `low`, times two. Where no sum lost
    # a bit, as with short factors, `high` is already rounded, even from halfway between neighbours.
    bound = 2.0 * (2.0 * a.shape[2] * ROUNDING) ** 2 * (a.abs() @ b.abs())
    product = torch.where(lost == 0.0, high, high + (low - bound))
    undecided = (product != high + (low + bound)).logical_and(lost != 0.0).nonzero().tolist()
    for batch, row, column in undecided:
        pairs = zip(a[batch, row].tolist(), b[batch, :, column].tolist(), strict=True)
        exact = sum((Fraction(p) * Fraction(q) for p, q in pairs), Fraction(0))
        product[batch, row, column] = float(exact)
    return product


def exact_solve(a: Tensor, b: Tensor) -> Tensor:
    """x (B, N, K), float64, with ax = b for the given numbers a (B, N, N) and b (B, N, K).

    For N ≤ 32, every entry is the exact one, rounded once; a singular matrix gives NaN, and if all
    are singular, this raises ValueError. For larger N, entries have about 100 − log₂ κ correct bits
    before they are rounded, where κ is the condition number.
    """
    if a.shape[1] <= LARGEST:
        return evaluate_exactly(lambda matrix, right: matrix.solve(right), a, b)
    return _refined_solve(a.double().cpu(), b.double().cpu())[0]


def exact_least_squares(
    x: Tensor, y: Tensor, *, query: Tensor | None = None, ridge: Tensor | None = None
) -> Tensor:
    """w (B, D, K) that minimizes ‖xw − y‖² + ridge‖w‖², or query · w (B, Q, K), rounded once.

    x is (B, N, D), y (B, N, K), query (B, Q, D) and ridge (B,). Without ridge, w has the least norm
    if N < D. The limits are those of `exact_solve` for min(N, D) unknowns.
    """
    examples, dim = x.shape[1:]
    if examples == 0:
        return x.new_zeros(len(x), dim if query is None else query.shape[1], y.shape[2]).double()
    if ridge is None:
        ridge = x.new_zeros(len(x))
    if min(examples, dim) <= LARGEST:
        further = () if query is None else (query,)
        return evaluate_exactly(_estimate, x, y, ridge[:, None, None], *further)
    high, low = _refined_weights(*(t.double().cpu() for t in (x, y, ridge)))
    if query is None:
        return high
    query = query.double().cpu()
    return _double_matmul(torch.cat([query, query], dim=2), torch.cat([high, low], dim=1))[0]


def _estimate(x: arb_mat, y: arb_mat, ridge: arb_mat, query: arb_mat | None = None) -> arb_mat:
    """w, or query · w, from the smaller of the two Gram matrices."""
    transposed = x.transpose()
    wide = x.nrows() < x.ncols()
    gram = x * transposed if wide else transposed * x
    for i in range(gram.nrows()):
        gram[i, i] = gram[i, i] + ridge[0, 0]
    w = transposed * gram.solve(y) if wide else gram.solve(transposed * y)
    return w if query is None else query * w


def _refined_weights(x: Tensor, y: Tensor, ridge: Tensor) -> tuple[Tensor, Tensor]:
    """w as a sum of two float64 numbers, from a linear system whose entries are the given numbers.

    With N ≥ D it is r + xw = y, xᵀr − λw = 0; otherwise w − xᵀz = 0, xw + λz = y.
    """
    examples, dim = x.shape[1:]
    wide = examples < dim
    first, second = (dim, examples) if wide else (examples, dim)
    one, penalty = (
        torch.eye(n, dtype=x.dtype).expand(len(x), n, n) * factor
        for n, factor in ((first, 1.0), (second, ridge[:, None, None]))
    )
    zeros = y.new_zeros(len(x), dim, y.shape[2])
    top = torch.cat([one, -x.mT if wide else x], dim=2)
    bottom = torch.cat([x, penalty] if wide else [x.mT, -penalty], dim=2)
    right = torch.cat([zeros, y] if wide else [y, zeros], dim=1)
    high, low = _refined_solve(torch.cat([top, bottom], dim=1), right)
    rows = slice(None, dim) if wide else slice(examples, None)
    return high[:, rows], low[:, rows]


def _refined_solve(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """x of ax = b as a sum of two float64 numbers; the first is x rounded."""
    factor = torch.linalg.lu_factor(a)
    high = torch.linalg.lu_solve(*factor, b)
    low = torch.zeros_like(high)
    twice = torch.cat([-a, -a], dim=2)
    for _ in range(REFINEMENTS):
        rest, last, _ = _double_matmul(twice, torch.cat([high, low], dim=1), start=b)
        correction = torch.linalg.lu_solve(*factor, rest + last)
        high, low = _two_sum(high, low + correction)
        if (correction.abs() <= REFINED * high.abs().amax(dim=1, keepdim=True)).all():
            break
    return high, low


def _double_matmul(
    a: Tensor, b: Tensor, start: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """start + a @ b as a sum of two numbers, the first rounded (Ogita, Rump and Oishi 2005).

    The third result is 0 where that sum is exact.
    """
    high = a.new_zeros(len(a), a.shape[1], b.shape[2]) if start is None else start
    low, lost = torch.zeros_like(high), torch.zeros_like(high)
    # Contiguous slices: elementwise operations on strided ones are slow.
    columns, rows = a.permute(2, 0, 1).contiguous(), b.permute(1, 0, 2).contiguous()
    for column, row in zip(columns, rows, strict=True):
        product, product_error = _two_product(column[:, :, None], row[:, None])
        high, sum_error = _two_sum(high, product)
        error, first = _two_sum(product_error, sum_error)
        low, second = _two_sum(low, error)
        lost = lost + (first.abs() + second.abs())
    return *_two_sum(high, low), lost


def _two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a + b rounded, and the error of the rounding (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """a · b rounded, and the error of the rounding (Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    """The leading 26 bits of a, and the rest (Veltkamp)."""
    factor = (2.0**27 + 1.0) * a
    high = factor - (factor - a)
    return high, a - high
