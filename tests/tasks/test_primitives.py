"""The tasks read, affine, multiply and square: targets and parameters."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import UsageError, load_task
from iclbench.kit.tasks import check_task

NAMES = ("read", "affine", "multiply", "square")


@pytest.mark.parametrize("name", NAMES)
@given(half=st.integers(1, 4), length=st.integers(2, 9), seed=st.integers(0, 20))
def test_the_tasks_conform_in_every_shape(name, half, length, seed):
    check_task(load_task(name, dim=2 * half, length=length, task_seed=seed), n=3)


def make_batch(task, n=4):
    return task.evaluation_batches(n, 0, torch.float64)[0]


@pytest.mark.parametrize("seed", range(5))
def test_read_copies_row_i_to_row_j_and_keeps_other_rows(seed):
    task = load_task("read", dim=3, length=6, task_seed=seed)
    i, j = (int(task.parameters[name]) for name in ("i", "j"))
    batch = make_batch(task)
    u, answer = batch.prompt.tokens, batch.target
    assert i < j
    assert torch.equal(answer[:, j], u[:, i])
    others = [k for k in range(6) if k != j]
    assert torch.equal(answer[:, others], u[:, others])


def test_read_with_any_order_also_copies_backwards():
    pairs = set()
    for seed in range(60):
        parameters = load_task("read", length=4, order="any", task_seed=seed).parameters
        pairs.add((int(parameters["i"]), int(parameters["j"])))
    assert pairs == {(i, j) for i in range(4) for j in range(4) if i != j}


def test_affine_is_a_product_with_one_vector_of_variance_three():
    task = load_task("affine", dim=4, length=3)
    batch = make_batch(task)
    expected = torch.einsum("bnd,d->bn", batch.prompt.tokens, task.parameters["h"])
    torch.testing.assert_close(batch.target[..., 0], expected, rtol=1e-14, atol=1e-14)
    h = load_task("affine", dim=4000).parameters["h"]
    assert h.var() == pytest.approx(3.0, rel=0.1)


def test_multiply_and_square_are_products_of_entries():
    batch = make_batch(load_task("multiply", dim=4, length=3))
    u = batch.prompt.tokens
    assert torch.equal(batch.target, torch.stack([u[..., 0] * u[..., 2], u[..., 1] * u[..., 3]], 2))
    batch = make_batch(load_task("square", dim=4, length=3))
    assert torch.equal(batch.target, batch.prompt.tokens**2)


def test_parameters_depend_only_on_the_task_seed():
    for name in ("read", "affine"):
        torch.manual_seed(5)
        first = load_task(name, task_seed=1).parameters
        torch.manual_seed(6)
        again, other = load_task(name, task_seed=1).parameters, load_task(name).parameters
        assert all(torch.equal(first[p], again[p]) for p in first)
        assert any(not torch.equal(first[p], other[p]) for p in first)


def test_parameters_have_golden_values():
    read = load_task("read").parameters
    assert (int(read["i"]), int(read["j"])) == (10, 29)
    assert load_task("affine").parameters["h"][:2].tolist() == pytest.approx(
        [0.10926739037941618, -2.8536514734963907], rel=1e-14
    )


def test_bad_configurations_are_refused():
    with pytest.raises(UsageError, match="even dim"):
        load_task("multiply", dim=3)
    with pytest.raises(UsageError, match="length"):
        load_task("read", length=1)
