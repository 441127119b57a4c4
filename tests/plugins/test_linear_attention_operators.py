"""The operators LSA and ELSA, and Properties 1 to 4, which they compute exactly."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_tensors import randn

from iclbench_linear_attention.operators import (
    attend,
    elsa,
    lsa,
    mask_and_move,
    mask_and_move_matrices,
)
from iclbench_linear_attention.properties import (
    block_product,
    constant,
    identity,
    transposed_product,
)

sizes = st.integers(1, 7)
seeds = st.integers(0, 99)
dtypes = st.sampled_from([torch.float32, torch.float64])
EPS = {torch.float32: 1e-5, torch.float64: 1e-13}


def assert_close(actual, expected, dtype):
    scale = max(1.0, float(expected.abs().max()))
    assert actual.dtype == dtype
    assert (actual - expected).abs().max() <= EPS[dtype] * scale


@given(m=sizes, n=sizes, lead=st.sampled_from([(), (3,), (2, 3)]), seed=seeds)
def test_lsa_and_elsa_match_equations_8_and_16(m, n, lead, seed):
    H = randn(seed, *lead, m, n)
    W, B = randn(seed + 1, 3, n, n), randn(seed + 2, 3, m, n)
    Q, K, V = H @ W[2], H @ W[0], H @ W[1]
    torch.testing.assert_close(lsa(H, *W), torch.einsum("...ia,...ja,...jb->...ib", Q, K, V))
    Q, K, V = Q + B[2], K + B[0], V + B[1]
    mixed = elsa(H, *zip(W, B, strict=True))
    torch.testing.assert_close(mixed, torch.einsum("...ia,...ja,...jb->...ib", Q, K, V))


@pytest.mark.parametrize(("m", "n"), [(3, 8), (8, 3), (5, 5)])
def test_both_orders_of_association_agree_and_the_cheaper_one_is_used(m, n, monkeypatch):
    a, b, c = (randn(i, 2, m, n) for i in range(3))
    outer, inner = (a @ b.mT) @ c, a @ (b.mT @ c)
    torch.testing.assert_close(outer, inner)
    shapes = []
    matmul = torch.Tensor.__matmul__

    def spy(x, y):
        shapes.append(tuple(matmul(x, y).shape[-2:]))
        return matmul(x, y)

    monkeypatch.setattr(torch.Tensor, "__matmul__", spy)
    mixed = attend(a, b, c)
    monkeypatch.undo()
    assert shapes[0] == (min(m, n), min(m, n))
    torch.testing.assert_close(mixed, outer)


def test_causal_attention_sees_no_later_row():
    a, b, c = (randn(i, 2, 5, 3) for i in range(3))
    mixed = attend(a, b, c, causal=True)
    changed_later = [torch.cat([t[:, :3], 9 + t[:, 3:]], dim=1) for t in (a, b, c)]
    assert torch.equal(attend(*changed_later, causal=True)[:, :3], mixed[:, :3])
    torch.testing.assert_close(mixed[:, -1], attend(a, b, c)[:, -1])


# Property 1


@given(data=st.data(), m=sizes, n=sizes, seed=seeds)
def test_property_1_mask_and_move(data, m, n, seed):
    A = randn(seed, m, n)
    i = data.draw(st.integers(0, m - 1))
    j = data.draw(st.integers(i + 1, m))
    k = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(k + 1, n))
    down, right = data.draw(st.integers(-i, m - j)), data.draw(st.integers(-k, n - end))
    expected = torch.zeros_like(A)
    expected[i + down : j + down, k + right : end + right] = A[i:j, k:end]
    assert torch.equal(mask_and_move(A, (i, j), (k, end), down, right), expected)
    W, V = mask_and_move_matrices((m, n), (i, j), (k, end), down, right)
    assert torch.equal(W.double() @ A @ V.double(), expected)


def test_equation_7_moves_to_the_upper_right_corner():
    A = randn(0, 4, 6)
    P = mask_and_move(A, (1, 3), (2, 4), -1, 2)
    assert torch.equal(P[:2, 4:], A[1:3, 2:4])
    assert P.count_nonzero() == 4


def test_a_block_can_t_leave_the_matrix():
    with pytest.raises(ValueError, match="not within 0:4"):
        mask_and_move(randn(0, 4, 4), (0, 2), (2, 4), 0, 1)
    with pytest.raises(ValueError, match="not within 0:4"):
        mask_and_move(randn(0, 4, 4), (0, 5), (2, 4), 0, 0)


# Properties 2, 3 and 4


@given(m=sizes, n=sizes, seed=seeds, dtype=dtypes)
def test_property_2_constant(m, n, seed, dtype):
    C = randn(seed, m, n, dtype=dtype)
    H = randn(seed + 1, 3, m, n, dtype=dtype)
    assert torch.equal(elsa(H, *constant(C)), C.expand(3, m, n))


@given(m=sizes, n=sizes, seed=seeds, dtype=dtypes)
def test_property_3_identity(m, n, seed, dtype):
    H = randn(seed, 3, m, n, dtype=dtype)
    assert torch.equal(elsa(H, *identity(m, n, dtype)), H)


@given(r=sizes, s=sizes, t=sizes, seed=seeds, dtype=dtypes)
def test_property_4_products_of_submatrices_in_both_layouts(r, s, t, seed, dtype):
    A, B = randn(seed, 2, r, s, dtype=dtype), randn(seed + 1, 2, s, t, dtype=dtype)
    H = torch.zeros(2, s + r, r + t, dtype=dtype)
    H[:, :s, :r], H[:, :s, r:] = A.mT, B
    expected = torch.zeros_like(H)
    expected[:, :r, r:] = A @ B
    assert_close(elsa(H, *transposed_product(r, s, t, dtype)), expected, dtype)

    H = torch.zeros(2, r + s, s + t, dtype=dtype)
    H[:, :r, :s], H[:, r:, s:] = A, B
    expected = torch.zeros_like(H)
    expected[:, :r, s:] = A @ B
    assert_close(elsa(H, *block_product(r, s, t, dtype)), expected, dtype)
