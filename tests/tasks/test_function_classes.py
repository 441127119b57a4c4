"""The function classes: their values, floors, curriculum and shifts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from iclbench import (
    EvaluationContext,
    UsageError,
    check_task,
    exact_least_squares,
    load_task,
    run,
)

SMALL = {
    "sparse-linear": {"dim": 4, "examples": 6, "sparsity": 2},
    "quadratic": {"dim": 3, "examples": 5},
    "relu-network": {"dim": 3, "examples": 4, "hidden": 5},
    "decision-tree": {"dim": 3, "examples": 4, "depth": 2},
    "linear-classification": {"dim": 3, "examples": 4},
}
STAGE = {"active_dim": 3, "active_points": 3}


def small(name, **args):
    return load_task(name, **{**SMALL[name], **args})


def prompts(task, count=200):
    (batch,) = task.evaluation_batches(count, 0, torch.float64)
    return batch


def training(task, count=50):
    generator = torch.Generator().manual_seed(1)
    batch = task.training_batches(1, count, [generator], torch.float64)
    return [field[0, 0] for field in (*batch.prompt, batch.target)]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("staged", [False, True])
def test_tasks_conform(name, staged):
    check_task(small(name, **(STAGE if staged else {})), n=3)


@pytest.mark.parametrize(
    ("name", "square"),
    [("sparse-linear", 2.0), ("quadratic", 3.0), ("relu-network", 3.0), ("decision-tree", 1.0)],
)
def test_mean_square_of_the_values_is_the_source_s(name, square):
    for scale in (1.0, 2.0):
        squares = training(small(name, scale=scale), 6000)[-1].square().mean(dim=(1, 2))
        error = squares.std() / math.sqrt(len(squares))
        assert abs(squares.mean() - scale**2 * square) < 4 * error


def test_few_examples_are_answered_by_the_mean_over_all_supports():
    """Against densities N(y; 0, X_S X_Sᵀ) and conditional means, one support at a time."""
    task = small("sparse-linear", sparsity=3, scale=1.5)
    batch = prompts(task, 5)
    answers = task.exact_answer(batch)[:, :4, 0].numpy()
    inputs, y = batch.prompt.inputs().numpy(), batch.prompt.y.numpy()
    for row, k in itertools.product(range(5), range(4)):
        densities, values = [], []
        for support in itertools.combinations(range(4), 3):
            x = 1.5 * inputs[row, : k + 1][:, support]
            gram, ahead = x[:k] @ x[:k].T, x[:k] @ x[k]
            solved = np.linalg.solve(gram, y[row, :k, 0])
            densities.append(-0.5 * (np.linalg.slogdet(gram)[1] + y[row, :k, 0] @ solved))
            values.append(ahead @ solved)
        weights = np.exp(densities - np.max(densities))
        assert answers[row, k] == pytest.approx(weights @ values / weights.sum(), abs=1e-8)


def test_as_many_examples_as_dimensions_determine_a_function_that_is_not_sparse():
    """The attainable error is that of exact least squares, not of updates in float64."""
    task = load_task("sparse-linear", dim=6, sparsity=6, examples=6)
    assert task.floor_kind == "exact"
    (batch,) = task.evaluation_batches(64, 0, torch.float64)
    x, y = batch.prompt.x, batch.prompt.y
    expected = exact_least_squares(x, y, query=batch.prompt.inputs()[:, -1:])
    assert torch.equal(task.exact_answer(batch)[:, -1:], expected)


def test_more_examples_than_weights_determine_a_sparse_function():
    task = small("sparse-linear")
    batch = prompts(task)
    errors = task.metrics(task.exact_answer(batch), batch)["prefix_error"]
    assert errors[:, 3:].max() < 1e-18
    means = errors[:, :3].mean(dim=0)
    assert (means[:-1] > means[1:]).all()
    assert 0.5 < means[2] < 2.0
    # As many non-zero weights as dimensions are linear regression.
    dense = small("sparse-linear", sparsity=4, examples=3)
    batch = prompts(dense, 20)
    expected = exact_least_squares(batch.prompt.x, batch.prompt.y, query=batch.prompt.query)
    torch.testing.assert_close(dense.exact_answer(batch)[:, -1:], expected)
    assert dense.floor_kind == "bayes"
    assert task.floor_kind == small("sparse-linear", sparsity=4).floor_kind == "exact"


def test_quadratic_functions_are_solved_by_least_squares_in_squares():
    task = small("quadratic", scale=2.0)
    batch = prompts(task, 30)
    answers = task.exact_answer(batch)
    inputs, y = batch.prompt.inputs().numpy(), batch.prompt.y.numpy()
    for row, k in itertools.product(range(30), range(1, 6)):
        w = np.linalg.lstsq(inputs[row, :k] ** 2, y[row, :k], rcond=None)[0]
        assert answers[row, k, 0] == pytest.approx((inputs[row, k] ** 2 @ w).item(), rel=1e-6)
    errors = task.metrics(answers, batch)["prefix_error"]
    assert errors[:, 3:].max() < 1e-16
    assert errors[:, 2].median() > 1e-3
    assert task.floor_kind == "exact"
    assert small("quadratic", examples=2).floor_kind == "bayes"


def test_a_network_s_value_is_the_sum_over_its_units():
    task = small("relu-network")
    draws = {name: torch.from_numpy(v) for name, v in task.evaluation_draws(4, 0).items()}
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    for row, k in itertools.product(range(4), range(5)):
        units = [
            draws["a"][row, j, 0] * max(0.0, float(draws["w"][row, :, j] @ draws["x"][row, k]))
            for j in range(5)
        ]
        value = math.sqrt(2 / 5) * sum(units)
        assert float(batch.target[row, k, 0]) == pytest.approx(float(value), abs=1e-12)


def test_a_tree_s_value_is_the_leaf_that_its_questions_lead_to():
    task = small("decision-tree", depth=3)
    draws = task.evaluation_draws(6, 0)

    def leaf(row, x, node=0):
        nodes = len(draws["coordinates"][row])
        if node >= nodes:
            return draws["leaves"][row, node - nodes]
        return leaf(row, x, 2 * node + (2 if x[draws["coordinates"][row, node]] > 0 else 1))

    (batch,) = task.evaluation_batches(6, 0, torch.float64)
    for row, k in itertools.product(range(6), range(5)):
        assert float(batch.target[row, k, 0]) == leaf(row, draws["x"][row, k])


def test_a_classification_is_scored_by_the_sign_of_its_logit():
    task = small("linear-classification")
    batch = prompts(task, 40)
    product = batch.prompt.inputs() @ torch.from_numpy(task.evaluation_draws(40, 0)["w"])
    assert torch.equal(batch.target, product.sign())
    right = task.metrics(3.0 * batch.target, batch)
    assert (right["prefix_accuracy"] == 1.0).all()
    assert right["nll"].mean() == pytest.approx(math.log1p(math.exp(-3.0)))
    zero = task.chance(batch)
    assert (zero["accuracy"] == 0.5).all()
    assert zero["nll"].mean() == pytest.approx(math.log(2))
    assert (task.metrics(torch.full_like(batch.target, torch.nan), batch)["accuracy"] == 0).all()
    wrong = -2.0 * batch.target
    assert task.loss(wrong, batch.target).mean() == pytest.approx(math.log1p(math.exp(2.0)))


@pytest.mark.parametrize(
    ("model", "expected"),
    [("least-squares-qr", lambda k: max(4.0 - k, 0.0)), ("averaging", lambda k: 20.0 / k)],
)
def test_linear_controls_have_their_closed_forms(model, expected, tmp_path):
    """OLS of least norm: D − k; averaging: D(D+1)/k, on linear functions of D = 4."""
    record = run(
        model=model,
        task="sparse-linear",
        task_args={"dim": 4, "examples": 8, "sparsity": 4},
        eval_prompts=1000,
        dtype="float64",
        out=tmp_path,
    )
    curve = record.curves["prefix_error"]
    for k in (1, 2, 3, 5, 8):
        low, high = curve.low[k], curve.high[k]
        width = max(high - low, 1e-9)
        assert low - width < expected(k) < high + width


# The curriculum


@pytest.mark.parametrize("name", SMALL)
def test_a_stage_zeroes_inputs_and_leaves_out_answers(name):
    task = small(name).at_stage({**STAGE, "active_dim": 2})
    tokens, x, y, query, target = training(task)
    assert (x[..., 2:] == 0).all()
    assert (query[..., 2:] == 0).all()
    assert (x[..., :2] != 0).all()
    assert target[:, 3:].isnan().all()
    assert target[:, :3].isfinite().all()
    assert y.isfinite().all()
    assert tokens.isfinite().all()
    # Evaluation is the whole task's.
    plain = small(name).evaluation_digest(4, 0)
    assert task.evaluation_digest(4, 0) == plain


def test_the_loss_in_a_stage_is_that_of_shorter_prompts():
    task = small("quadratic").at_stage({"active_points": 3})
    target = training(task)[-1]
    prediction = torch.randn(target.shape, dtype=target.dtype, requires_grad=True)
    loss = task.loss(prediction, target)
    expected = (prediction - target)[:, :3].square().mean(dim=(1, 2))
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss.sum(), prediction)
    assert gradient.isfinite().all()
    assert (gradient[:, 3:] == 0).all()


def test_supports_lie_within_the_active_dimensions():
    task = small("sparse-linear").at_stage({"active_dim": 2})
    _, x, y, _, _ = training(task, 200)
    # With both non-zero weights among two coordinates, two examples determine the rest.
    w = torch.linalg.solve(x[:, :2, :2], y[:, :2])
    torch.testing.assert_close(x[..., :2] @ w, y, rtol=1e-6, atol=1e-6)
    assert (w.abs() > 1e-9).all()


@pytest.mark.parametrize(
    ("name", "last"), [("sparse-linear", 39), ("relu-network", 96), ("decision-tree", 96)]
)
def test_the_source_s_curriculum_ends_after_30000_steps(name, last):
    recipe = type(small(name)).recipes["paper"]
    assert sum(stage.steps for stage in recipe.stages) == 30_000
    assert [s.task_args["active_dim"] for s in recipe.stages] == list(range(5, 20))
    assert recipe.stages[-1].task_args["active_points"] == last
    task = load_task(name, **recipe.task_args)
    assert task.config.examples + 1 in {41, 101}
    for stage in recipe.stages:
        assert task.at_stage(stage.task_args).signature == task.signature


def test_a_run_through_stages_records_them(tmp_path):
    stages = [{"steps": 7, "task_args": {"active_dim": 2, "active_points": 4}}]
    record = run(
        model="transformer",
        task="sparse-linear",
        recipe="smoke",
        recipe_args={"stages": stages},
        seeds=2,
        eval_prompts=16,
        out=tmp_path,
    )
    assert record.spec.recipe_args["stages"] == stages
    assert [seed.diverged_at for seed in record.seeds] == [None, None]


# Shifts and refusals


@pytest.mark.parametrize("name", SMALL)
def test_floors_and_controls_are_finite_under_every_shift(name):
    task = small(name, dim=6, examples=7)
    assert len(task.shifts) >= 14
    context = EvaluationContext(torch.device("cpu"), torch.Generator())
    for shift in task.shifts:
        shifted = task.shifted(shift)
        (batch,) = shifted.evaluation_batches(3, 0, torch.float32)
        values = {**shifted.floor(batch, context), **shifted.chance(batch)}
        assert all(v.isfinite().all() for v in values.values()), shift


def test_shifts_that_a_class_can_t_have_are_absent():
    assert "signs" not in small("sparse-linear").shifts
    assert "signs" not in small("quadratic").shifts
    assert "signs" in small("decision-tree").shifts
    assert "half-subspace" not in small("sparse-linear").shifts
    assert "half-subspace" in small("sparse-linear", dim=6).shifts
    assert "values-double" not in small("linear-classification").shifts
    moved = small("sparse-linear").shifted("sparsity-double")
    assert moved.config.sparsity == 4


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("sparse-linear", {"sparsity": 5}, "sparsity is at most dim, 4"),
        ("sparse-linear", {"dim": 40, "sparsity": 10}, "more than 20,000 supports"),
        ("sparse-linear", {"active_dim": 1}, "sparsity is at most active_dim, 1"),
        ("quadratic", {"active_dim": 4}, "active_dim is at most dim, 3"),
        ("quadratic", {"active_points": 7}, "active_points is at most examples \\+ 1, 6"),
        ("decision-tree", {"depth": 17}, "depth: input should be less than or equal to 16"),
    ],
)
def test_bad_arguments_are_refused_in_a_line(name, args, message):
    with pytest.raises(UsageError, match=message) as error:
        small(name, **args)
    assert "\n" not in str(error.value)
