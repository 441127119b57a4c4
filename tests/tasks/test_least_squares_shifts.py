"""Regression under shift: the distributions, and what least squares of least norm does there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import evaluation_context

from iclbench import UsageError, load_task

PROMPTS = 2000


def shifted(name: str, task: str = "least-squares", **args):
    return load_task(
        task, dim=args.pop("dim", 4), examples=args.pop("examples", 8), **args
    ).shifted(name)


def prompts(name: str, **args):
    (batch,) = shifted(name, **args).evaluation_batches(PROMPTS, 0, torch.float64)
    return batch


def test_quadrants_are_those_of_the_examples_and_opposite_ones_of_the_query():
    for name in ("quadrants", "opposite-quadrants"):
        batch = prompts(name)
        signs = batch.prompt.x.sign()
        assert (signs == signs[:, :1]).all()
        assert 0.45 < (signs[:, 0] > 0).double().mean() < 0.55
        opposite = (batch.prompt.query.sign() == -signs[:, :1]).double().mean()
        assert opposite == 1.0 if name == "opposite-quadrants" else 0.45 < opposite < 0.55


def test_an_overlapping_query_is_an_example():
    batch = prompts("overlapping")
    places = (batch.prompt.x == batch.prompt.query).all(dim=2)
    assert (places.sum(dim=1) == 1).all()
    # Every example is chosen about as often.
    assert places.double().mean(dim=0).min() * 8 > 0.8


def test_an_orthogonal_query_tells_nothing_and_keeps_its_norm():
    plain = load_task("least-squares", dim=8, examples=3)
    batch = plain.shifted("orthogonal").evaluation_batches(PROMPTS, 0, torch.float64)[0]
    products = batch.prompt.x @ batch.prompt.query.mT
    assert products.abs().max() < 1e-12
    (before,) = plain.evaluation_batches(PROMPTS, 0, torch.float64)
    torch.testing.assert_close(batch.prompt.query.norm(dim=2), before.prompt.query.norm(dim=2))
    # Least squares of least norm answers 0, so its error is the target's size.
    torch.testing.assert_close(
        plain.exact_answer(batch), torch.zeros_like(batch.target), atol=1e-9, rtol=0
    )
    with pytest.raises(UsageError, match="unknown shift 'orthogonal'"):
        shifted("orthogonal")


@pytest.mark.parametrize("examples", [1, 2, 4])
def test_least_squares_in_half_the_dimensions_errs_by_dim_minus_two_examples(examples):
    """E error = max(D − 2N, 0): within the subspace of D/2 it is the usual D' − N, times 2."""
    task = load_task("least-squares", dim=8, examples=examples).shifted("half-subspace")
    (batch,) = task.evaluation_batches(PROMPTS, 0, torch.float64)
    errors = (task.exact_answer(batch) - batch.target).square().flatten().numpy()
    expected = max(8 - 2 * examples, 0)
    assert abs(errors.mean() - expected) <= 4 * errors.std() / np.sqrt(PROMPTS) + 1e-6
    rank = torch.linalg.matrix_rank(torch.cat([batch.prompt.x, batch.prompt.query], 1), rtol=1e-9)
    assert rank.max() <= 4


@pytest.mark.parametrize(
    ("name", "moments"),
    [("uniform", (1.0, 1.8)), ("signs", (1.0, 1.0)), ("skewed", (1.0, None))],
)
def test_other_inputs_have_the_same_variance(name, moments):
    x = prompts(name, examples=40).prompt.x
    assert x.square().mean() == pytest.approx(moments[0], rel=0.05)
    if moments[1] is not None:
        assert x.pow(4).mean() == pytest.approx(moments[1], rel=0.05)


def test_skewed_inputs_have_eigenvalues_in_the_ratio_of_one_over_i_squared():
    x = prompts("skewed", examples=40).prompt.x
    covariance = (x.mT @ x).mean(dim=0) / x.shape[1]
    values = torch.linalg.eigvalsh(covariance).flip(0)
    expected = 1.0 / torch.arange(1, 5, dtype=torch.float64) ** 2
    torch.testing.assert_close(values / values[0], expected, rtol=0.1, atol=0.01)
    assert values.sum() == pytest.approx(4.0, rel=0.05)


def test_heavy_tailed_inputs_have_the_quantiles_of_student_t():
    x = prompts("heavy-tailed", examples=40).prompt.x.flatten()
    # The quartile of t with 3 degrees of freedom is 0.7649, here divided by √3.
    assert x.abs().median() == pytest.approx(0.7649 / 3**0.5, rel=0.02)


@pytest.mark.parametrize(("name", "part"), [("inputs-double", "x"), ("values-double", "w")])
def test_scales_double_the_targets(name, part):
    plain = load_task("least-squares", dim=4, examples=8)
    (before,) = plain.evaluation_batches(8, 0, torch.float64)
    (after,) = plain.shifted(name).evaluation_batches(8, 0, torch.float64)
    torch.testing.assert_close(after.target, 2 * before.target)
    factor = 2.0 if part == "x" else 1.0
    torch.testing.assert_close(after.prompt.x, factor * before.prompt.x)


def test_arguments_shift_noise_conditioning_and_length():
    assert shifted("noisy").floor_kind == "bayes"
    (batch,) = shifted("condition-100").evaluation_batches(4, 0, torch.float64)
    assert torch.linalg.cond(batch.prompt.x).allclose(torch.tensor(100.0, dtype=torch.float64))
    assert shifted("examples-double").signature.length == 17
    assert shifted("examples-half").signature.length == 5


@pytest.mark.parametrize("name", ["values-third", "values-triple"])
@pytest.mark.parametrize("examples", [3, 8])
def test_with_noise_the_bayes_predictor_knows_the_scale_of_the_values(name, examples):
    """By the covariance of y and the query's value, which needs no ridge regression."""
    task = load_task("least-squares", dim=4, examples=examples, noise=1.0).shifted(name)
    (batch,) = task.evaluation_batches(64, 0, torch.float64)
    x, y, query = batch.prompt.x, batch.prompt.y, batch.prompt.query
    prior = {"values-third": 1 / 9, "values-triple": 9.0}[name]
    covariance = prior * x @ x.mT + torch.eye(examples, dtype=torch.float64)
    expected = prior * query @ x.mT @ torch.linalg.solve(covariance, y)
    torch.testing.assert_close(task.exact_answer(batch), expected)


def test_shifts_that_leave_the_answer_open_are_not_defined():
    def shifts(task, **args):
        return load_task(task, **args).shifts

    assert "signs" in shifts("least-squares")
    assert "signs" not in shifts("least-squares", dim=3, examples=8)
    assert "signs" not in shifts("least-squares", dim=5, examples=4)
    assert "signs" in shifts("least-squares", dim=3, examples=8, noise=1.0)
    assert "signs" not in shifts("least-squares-prefixes")
    assert "half-subspace" in shifts("least-squares")
    assert "half-subspace" not in shifts("least-squares", target="weights")
    assert "half-subspace" not in shifts("least-squares-features")
    conditioned = shifts("least-squares", condition_number=100)
    assert {"overlapping", "inputs-double", "values-double"} <= conditioned.keys()
    assert not {"uniform", "skewed", "quadrants", "signs", "heavy-tailed"} & conditioned.keys()


def test_the_exact_gradient_s_descent_diverges_under_no_shift():
    task = load_task("gradient")
    assert {"uniform", "inputs-half", "values-triple"} <= task.shifts.keys()
    for name in task.shifts:
        shifted = task.shifted(name)
        (batch,) = shifted.evaluation_batches(100, 0, torch.float64)
        floor = shifted.floor(batch, evaluation_context())["weight_error"]
        start = shifted.chance(batch)["weight_error"]
        assert (floor < start).all(), name


def test_an_optimal_step_needs_all_dimensions():
    assert "half-subspace" not in load_task("ridge").shifts
    assert "half-subspace" in load_task("ridge", step=0.01).shifts
    assert "half-subspace" not in load_task("ridge", step=0.01, ridge=0).shifts


def test_shifts_of_gradient_steps_change_what_is_measured():
    """A shift of the query alone would not."""
    task = load_task("gradient-steps", dim=4, examples=3)
    plain = load_task("least-squares", dim=4, examples=3)
    left_out = {"opposite-quadrants", "orthogonal", "overlapping"}
    assert plain.shifts.keys() - task.shifts.keys() == left_out
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    for name in task.shifts:
        (moved,) = task.shifted(name).evaluation_batches(4, 0, torch.float64)
        same = moved.target.shape == batch.target.shape and torch.equal(moved.target, batch.target)
        assert not same, name


def test_training_prompts_are_never_shifted():
    plain = load_task("least-squares", dim=4, examples=8)
    batches = [
        task.training_batches(1, 4, [torch.Generator().manual_seed(3)], torch.float32)
        for task in (plain, plain.shifted("quadrants"))
    ]
    assert torch.equal(batches[0].prompt.x, batches[1].prompt.x)


def test_every_shift_of_every_task_gives_other_prompts_with_a_digest_of_their_own():
    for task in ("least-squares", "least-squares-prefixes", "ridge", "linear-system",
                 "categorical", "categorical-quadrants", "gradient"):  # fmt: skip
        plain = load_task(task)
        digests = {plain.evaluation_digest(4, 0)}
        for name in plain.shifts:
            moved = plain.shifted(name)
            batches = moved.evaluation_batches(4, 0, torch.float32)
            assert len(batches[0].target) == 4
            digests.add(moved.evaluation_digest(4, 0))
        assert len(digests) == 1 + len(plain.shifts), task


def test_normalized_values_are_as_large_as_without_noise_and_the_floor_is_ridge():
    """Of Garg et al. (2022): E y² = D with any noise, and the posterior mean has λ = σ²."""
    args = {"dim": 4, "noise": 2.0, "normalized": True}
    wide = load_task("least-squares-prefixes", examples=60, **args)
    (batch,) = wide.evaluation_batches(PROMPTS, 0, torch.float64)
    assert batch.prompt.y.square().mean() == pytest.approx(4.0, rel=0.1)
    assert batch.target.square().mean() == pytest.approx(4.0 * 4.0 / 8.0, rel=0.1)
    task = load_task("least-squares", examples=12, **args)
    (batch,) = task.evaluation_batches(50, 0, torch.float64)
    x, y, query = batch.prompt.x, batch.prompt.y, batch.prompt.query
    ridge = torch.linalg.solve(x.mT @ x + 4.0 * torch.eye(4, dtype=x.dtype), x.mT @ y)
    torch.testing.assert_close(task.exact_answer(batch), query @ ridge)
    with pytest.raises(UsageError, match="normalized needs noise"):
        load_task("least-squares", normalized=True)
