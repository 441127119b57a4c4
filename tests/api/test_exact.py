"""Exact answers against rational arithmetic, and against mpmath for larger systems."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import evaluate_exactly, exact_least_squares, exact_matmul, exact_solve
from iclbench.api.exact import LARGEST


def fractions(matrix):
    return [[Fraction(v) for v in row] for row in matrix.tolist()]


def multiply(a, b):
    columns = transpose(b)
    pairs = ([zip(row, column, strict=True) for column in columns] for row in a)
    return [[sum(p * q for p, q in pair) for pair in row] for row in pairs]


def solve(a, b):
    """ax = b by Gauss–Jordan elimination with pivoting, in rational arithmetic."""
    rows = [[*row, *right] for row, right in zip(a, b, strict=True)]
    n = len(a)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [p - rows[i][k] * q for p, q in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def transpose(a):
    return [list(column) for column in zip(*a, strict=True)]


def floats(a):
    """Rationals rounded once; Python rounds the quotient of two integers correctly."""
    return [[float(v) for v in row] for row in a]


def conditioned(rng, rows, columns, kappa):
    """A matrix with that condition number."""
    left = np.linalg.qr(rng.standard_normal((rows, rows)))[0]
    right = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    rank = min(rows, columns)
    return torch.from_numpy(left[:, :rank] * np.geomspace(1, 1 / kappa, rank) @ right[:rank])


KAPPA = st.sampled_from([1.0, 1e3, 1e6])
DTYPE = st.sampled_from([torch.float32, torch.float64])


@given(n=st.integers(1, 6), kappa=KAPPA, dtype=DTYPE, seed=st.integers(0, 99))
def test_systems_are_solved_exactly(n, kappa, dtype, seed):
    rng = np.random.default_rng(seed)
    a = torch.stack([conditioned(rng, n, n, kappa) for _ in range(2)]).to(dtype)
    b = torch.from_numpy(rng.standard_normal((2, n, 2))).to(dtype)
    x = exact_solve(a, b)
    assert x.dtype == torch.float64
    for i in range(2):
        assert x[i].tolist() == floats(solve(fractions(a[i]), fractions(b[i])))


@given(
    examples=st.integers(1, 8),
    dim=st.integers(1, 5),
    kappa=KAPPA,
    dtype=DTYPE,
    penalty=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 99),
)
def test_least_squares_are_solved_exactly(examples, dim, kappa, dtype, penalty, seed):
    rng = np.random.default_rng(seed)
    x = conditioned(rng, examples, dim, kappa).to(dtype)
    y, query = (
        torch.from_numpy(rng.standard_normal(shape)).to(dtype)
        for shape in ((examples, 1), (2, dim))
    )
    X, Y = fractions(x), fractions(y)
    columns = transpose(X)
    wide = examples < dim
    gram = multiply(X, columns) if wide else multiply(columns, X)
    for i, row in enumerate(gram):
        row[i] += Fraction(penalty)
    w = multiply(columns, solve(gram, Y)) if wide else solve(gram, multiply(columns, Y))
    ridge = torch.full((1,), penalty, dtype=torch.float64)
    batch = (x[None], y[None])
    assert exact_least_squares(*batch, ridge=ridge)[0].tolist() == floats(w)
    at_query = exact_least_squares(*batch, query=query[None], ridge=ridge)[0]
    assert at_query.tolist() == floats(multiply(fractions(query), w))
    if not penalty:
        assert exact_least_squares(*batch)[0].tolist() == floats(w)


def test_without_examples_the_least_norm_is_zero():
    x, y, query = torch.zeros(3, 0, 2), torch.zeros(3, 0, 1), torch.ones(3, 4, 2)
    assert torch.equal(exact_least_squares(x, y), torch.zeros(3, 2, 1, dtype=torch.float64))
    assert exact_least_squares(x, y, query=query).shape == (3, 4, 1)


@given(length=st.integers(1, 9), spread=st.sampled_from([1.0, 1e12]), seed=st.integers(0, 999))
def test_products_are_rounded_once(length, spread, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((1, 3, length)), rng.standard_normal((1, length, 2))
    # The last term cancels the others to the last bits.
    a[:, :, -1] = -(a[:, :, :-1] @ b[:, :-1, :1])[..., 0] / b[:, -1, :1] * (1 + spread / 1e28)
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    assert exact_matmul(a, b)[0].tolist() == floats(multiply(fractions(a[0]), fractions(b[0])))


def test_a_sum_halfway_between_two_numbers_is_rounded_to_even():
    a = torch.tensor([[[1.0, 2.0**-53], [1.0 + 2.0**-52, 2.0**-53]]], dtype=torch.float64)
    ones = torch.ones(1, 2, 1, dtype=torch.float64)
    expected = [[1.0], [1.0 + 2.0**-51]]
    assert exact_matmul(a, ones)[0].tolist() == expected
    assert evaluate_exactly(lambda p, q: p * q, a, ones)[0].tolist() == expected


def test_an_answer_of_zero_is_zero():
    """The ball around it shrinks below the smallest float64."""
    a = torch.tensor([[[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 7.0]]])
    assert exact_solve(a, a[:, :, :1])[0, :, 0].tolist() == [1.0, 0.0, 0.0]


def test_a_singular_system_has_no_answer():
    a = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]]])
    b = torch.ones(2, 2, 1)
    x = exact_solve(a, b)
    assert x[0].isnan().all()
    assert x[1, :, 0].tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match="not defined"):
        exact_solve(a[:1], b[:1])


@pytest.mark.parametrize("kappa", [10.0, 1e6])
def test_large_systems_are_solved_to_the_last_bit(kappa):
    """mpmath solves the same numbers with 60 digits."""
    n = LARGEST + 4
    rng = np.random.default_rng(0)
    a, b = conditioned(rng, n, n, kappa)[None], torch.from_numpy(rng.standard_normal((1, n, 1)))
    with mpmath.workdps(60):
        x = mpmath.lu_solve(mpmath.matrix(a[0].tolist()), mpmath.matrix(b[0].tolist()))
        expected = [float(v) for v in x]
    assert exact_solve(a, b)[0, :, 0].tolist() == expected


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(LARGEST + 8, LARGEST + 2), (LARGEST + 2, LARGEST + 8)], ids=str)
def test_large_least_squares_agree_with_ball_arithmetic(shape, penalty, monkeypatch):
    rng = np.random.default_rng(1)
    x = conditioned(rng, *shape, 100.0)[None]
    y, query = torch.from_numpy(rng.standard_normal((1, shape[0], 1))), x[:, :2] + 1.0
    ridge = torch.full((1,), penalty, dtype=torch.float64)
    refined = [exact_least_squares(x, y, query=q, ridge=ridge) for q in (None, query)]
    monkeypatch.setattr("iclbench.api.exact.LARGEST", 64)
    proved = [exact_least_squares(x, y, query=q, ridge=ridge) for q in (None, query)]
    assert all(torch.equal(a, b) for a, b in zip(refined, proved, strict=True))


@pytest.mark.parametrize("bits", [10, 24, 53])
def test_products_are_rounded_once_even_from_halfway(bits):
    """Short factors often give sums halfway between two numbers; ties go to the even one."""
    rng = np.random.default_rng(bits)
    integers = rng.integers(-(2**bits), 2**bits, size=(2, 400, 3)).astype(np.float64)
    # Scales far apart, so that sums need more bits than a float64 has.
    scales = 2.0 ** rng.integers(-40, 40, size=(400, 3))
    a, b = torch.from_numpy(integers[0] * scales)[:, None], torch.from_numpy(integers[1])[..., None]
    expected = [
        float(sum(Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)))
        for x, y in zip(a[:, 0].tolist(), b[..., 0].tolist(), strict=True)
    ]
    assert exact_matmul(a, b)[:, 0, 0].tolist() == expected
