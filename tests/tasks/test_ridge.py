"""The task ridge: exact answers, prompts and draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import UsageError, training_batch
from iclbench.api.config import parse_config
from iclbench.kit.tasks import check_task
from iclbench.runs.evaluate import floor
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression

CPU = torch.device("cpu")


def ridge(**config) -> RidgeRegression:
    return RidgeRegression(RidgeConfig(**config))


def answer_exactly(x, y, u, penalty) -> Fraction:
    """uᵀ(XᵀX + λI)⁻¹Xᵀy in rational arithmetic, by Gauss–Jordan elimination."""
    X = [[Fraction(float(v)) for v in row] for row in x]
    Y = [Fraction(float(v)) for v in y]
    d = len(X[0])
    rows = [
        [
            sum(r[i] * r[j] for r in X) + (Fraction(float(penalty)) if i == j else 0)
            for j in range(d)
        ]
        + [sum(r[i] * v for r, v in zip(X, Y, strict=True))]
        for i in range(d)
    ]
    for k in range(d):
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(d):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return sum(Fraction(float(v)) * row[d] for v, row in zip(u, rows, strict=True))


@pytest.mark.slow
@given(
    dim=st.integers(1, 5),
    examples=st.integers(1, 9),
    penalty=st.sampled_from([0.1, (0.01, 10.0)]),
    step=st.sampled_from(["optimal", 0.02]),
)
def test_the_task_conforms_in_every_shape(dim, examples, penalty, step):
    check_task(ridge(dim=dim, examples=examples, ridge=penalty, step=step), n=3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("examples", [3, 7])
def test_targets_are_exact_answers_to_rounded_prompts(dtype, examples):
    task = ridge(dim=4, examples=examples, ridge=(0.01, 1.0))
    (batch,) = task.evaluation_batches(16, 0, dtype)
    for i in range(16):
        x, y, u, penalty, _ = (field[i] for field in batch.prompt[1:])
        exact = float(answer_exactly(x, y[:, 0], u[0], penalty))
        assert float(batch.target[i, 0, 0]) == exact


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_attainable_error_is_one_rounding_in_the_dtype(dtype):
    task = ridge()
    (batch,) = task.evaluation_batches(512, 0, dtype)
    errors = floor(task, [batch])["squared_error"]
    squares = batch.target[:, 0, 0].square()
    scale = squares.clamp(min=squares.mean()).numpy()
    ratio = errors / scale / torch.finfo(dtype).eps ** 2
    assert ratio.min() >= 1 / 16
    assert ratio.max() <= 1 / 4


def test_tokens_hold_examples_penalty_step_and_query():
    (batch,) = ridge(dim=3, examples=4, ridge=(0.1, 1.0)).evaluation_batches(2, 0, torch.float32)
    tokens, x, y, query, penalty, step = batch.prompt
    assert torch.equal(tokens[:, :4], torch.cat([x, y], dim=2))
    assert torch.equal(tokens[:, 4, :2], torch.stack([penalty, step], dim=1))
    assert (tokens[:, 4, 2:] == 0).all()
    assert torch.equal(tokens[:, 5, :3], query[:, 0])
    assert (tokens[:, 5, 3] == 0).all()


def test_penalties_are_log_uniform_or_constant():
    (varied,) = ridge(ridge=(0.1, 10.0)).evaluation_batches(4096, 0, torch.float64)
    logs = varied.prompt.ridge.log10()
    assert -1 <= logs.min() < -0.99 < 0.99 < logs.max() <= 1
    assert abs(logs.mean()) < 0.04
    (constant,) = ridge(ridge=0.3, step=0.01).evaluation_batches(4, 0, torch.float64)
    assert (constant.prompt.ridge == 0.3).all()
    assert (constant.prompt.step == 0.01).all()


def test_gradient_descent_with_the_prompt_s_step_contracts():
    (batch,) = ridge().evaluation_batches(64, 0, torch.float64)
    x, step = batch.prompt.x, batch.prompt.step
    values = torch.linalg.eigvalsh(x.mT @ x) + 0.25
    assert (1 - step[:, None] * values).abs().max() < 1


@pytest.mark.parametrize("examples", [3, 20])
def test_the_optimal_step_balances_the_extreme_eigenvalues(examples):
    """2/(λmin + λmax) of XᵀX + λI on the row space of X."""
    (batch,) = ridge(examples=examples, ridge=(0.1, 2.0)).evaluation_batches(64, 0, torch.float64)
    prompt = batch.prompt
    for x, penalty, step in zip(prompt.x, prompt.ridge, prompt.step, strict=True):
        values = torch.linalg.svdvals(x).square() + penalty
        assert float(step) == pytest.approx(2 / float(values[0] + values[-1]), rel=1e-12)


def test_the_floor_is_finite_where_ridge_vanishes_beside_a_singular_gram_matrix():
    task = ridge(ridge=1e-12, examples=2)
    (batch,) = task.evaluation_batches(64, 0, torch.float32)
    assert torch.isfinite(batch.target).all()
    assert np.isfinite(floor(task, [batch])["squared_error"]).all()
    training = training_batch(
        ridge(ridge=0.0, examples=5), 4096, torch.Generator().manual_seed(0), torch.float32
    )
    assert torch.isfinite(training.target).all()
    assert training.target.dtype == torch.float32


def test_the_problems_equal_those_of_least_squares():
    (a,) = ridge(noise=0.2).evaluation_batches(4, 0, torch.float32)
    (b,) = LeastSquares(FixedConfig(noise=0.2)).evaluation_batches(4, 0, torch.float32)
    assert torch.equal(a.prompt.x, b.prompt.x)
    assert torch.equal(a.prompt.y, b.prompt.y)
    torch.testing.assert_close(a.truth["clean"], b.target, rtol=0, atol=1e-14)


def test_the_bayes_penalty_has_the_least_error():
    """λ = σ² gives the Bayes estimator for w ~ N(0, I)."""
    task = ridge(noise=1.0, ridge=1.0, examples=6)
    batches = task.evaluation_batches(4096, 0, torch.float64)
    best = floor(task, batches)["clean_error"].mean()
    for other in (0.5, 2.0):
        changed = ridge(noise=1.0, ridge=other, examples=6)
        errors = floor(changed, changed.evaluation_batches(4096, 0, torch.float64))
        assert best < errors["clean_error"].mean()


def test_training_and_evaluation_have_the_same_distribution():
    task = ridge(ridge=(0.1, 10.0))
    training = training_batch(task, 4096, torch.Generator().manual_seed(0), torch.float64)
    (evaluation,) = task.evaluation_batches(4096, 0, torch.float64)
    batches = (training, evaluation)
    for a, b in ([batch.target for batch in batches], [batch.prompt.y for batch in batches]):
        assert float(a.std()) == pytest.approx(float(b.std()), rel=0.1)
    logs = [float(batch.prompt.ridge.log().mean()) for batch in batches]
    assert logs[0] == pytest.approx(logs[1], abs=0.1)


def test_with_query_replaces_the_query_in_every_field():
    for task in (ridge(dim=3), LeastSquares(FixedConfig(dim=3))):
        (batch,) = task.evaluation_batches(2, 0, torch.float32)
        query = torch.ones(2, 1, 3)
        changed = task.with_query(batch.prompt, query)
        assert torch.equal(changed.query, query)
        assert torch.equal(changed.tokens[:, -1, :3], query[:, 0])
        assert torch.equal(changed.tokens[:, :-1], batch.prompt.tokens[:, :-1])
        assert torch.equal(
            task.with_query(batch.prompt, batch.prompt.query).tokens, batch.prompt.tokens
        )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"ridge": [2.0, 1.0]}, "0 < low <= high"),
        ({"ridge": [0.0, 1.0]}, "0 < low <= high"),
        ({"ridge": -1.0}, "greater than or equal to 0"),
        ({"ridge": 0.0, "examples": 3}, "at least as many examples"),
        ({"ridge": 0.0, "condition_number": 2e6}, r"condition_number of at most 1e\+06"),
        ({"step": 0.0}, "greater than 0"),
    ],
)
def test_bad_configurations_are_refused(config, message):
    with pytest.raises(UsageError, match=message):
        parse_config(RidgeConfig, config, "task ridge")


@pytest.mark.parametrize(("ridge", "examples", "missing"), [
    (0.25, 4, set()),
    (0.0, 4, {"signs", "half-subspace", "examples-half"}),
    (0.0, 40, {"half-subspace"}),
])  # fmt: skip
def test_without_a_penalty_the_examples_of_every_shift_determine_the_estimate(
    ridge, examples, missing
):
    task = RidgeRegression(RidgeConfig(dim=4, examples=examples, ridge=ridge, step=0.01))
    every = set(RidgeRegression(RidgeConfig(dim=4, examples=examples, step=0.01)).shifts)
    assert every - set(task.shifts) == missing
    for name in task.shifts:
        (batch,) = task.shifted(name).evaluation_batches(16, 0, torch.float64)
        assert torch.isfinite(batch.target).all(), name
