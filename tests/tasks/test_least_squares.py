"""The least-squares tasks: closed forms, precision and golden draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import UsageError, load_task, training_batch
from iclbench.api.config import parse_config
from iclbench.kit.tasks import check_task
from iclbench.runs.evaluate import floor
from iclbench.runs.statistics import summarize
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig

CPU = torch.device("cpu")


def fixed(**config) -> LeastSquares:
    return LeastSquares(FixedConfig(**config))


def prefixes(**config) -> LeastSquaresPrefixes:
    return LeastSquaresPrefixes(LeastSquaresConfig(**config))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["query", "weights"])
@given(dim=st.integers(1, 7), examples=st.integers(1, 9), noise=st.sampled_from([0.0, 0.3]))
def test_fixed_conforms_in_every_shape(target, dim, examples, noise):
    check_task(fixed(dim=dim, examples=examples, noise=noise, target=target), n=3)


@pytest.mark.slow
@given(dim=st.integers(1, 5), examples=st.integers(1, 7))
def test_prefixes_conform_in_every_shape(dim, examples):
    check_task(prefixes(dim=dim, examples=examples), n=3)


def test_fixed_tokens_have_the_paper_s_layout():
    batch = fixed(dim=3, examples=4).evaluation_batches(2, 0, torch.float64)[0]
    tokens, x, y, query = batch.prompt
    assert torch.equal(tokens[:, :4, :3], x)
    assert torch.equal(tokens[:, :4, 3:], y)
    assert torch.equal(tokens[:, 4:, :3], query)
    assert (tokens[:, 4, 3] == 0).all()


def test_prefix_tokens_have_the_paper_s_layout():
    batch = prefixes(dim=3, examples=4).evaluation_batches(2, 0, torch.float64)[0]
    tokens, x, y, query = batch.prompt
    assert torch.equal(tokens[:, 0:8:2], x)
    assert torch.equal(tokens[:, 1:8:2, :1], y)
    assert (tokens[:, 1:8:2, 1:] == 0).all()
    assert torch.equal(tokens[:, 8:], query)
    assert batch.target.shape == (2, 5, 1)


def test_both_tasks_see_the_same_problems():
    a = fixed().evaluation_batches(4, 0, torch.float32)[0]
    b = prefixes().evaluation_batches(4, 0, torch.float32)[0]
    assert torch.equal(a.prompt.x, b.prompt.x)
    assert torch.equal(a.target[:, 0], b.target[:, -1])


@pytest.mark.slow
def test_least_squares_on_k_examples_has_error_d_minus_k():
    """Without noise, E[err²] is D − k up to k = D, and 0 beyond."""
    task = prefixes()
    errors = floor(task, task.evaluation_batches(4096, 0, torch.float64))["prefix_error"]
    for k in range(5):
        deviation = errors[:, k].std() / 64
        assert abs(errors[:, k].mean() - (5 - k)) < 4 * deviation
    assert errors[:, 5:].max() < 1e-12


@pytest.mark.parametrize(
    ("dtype", "expected"), [(torch.float32, 1.0e-15), (torch.float64, 3.5e-33)]
)
def test_the_attainable_error_is_that_of_the_exact_answer_rounded_once(dtype, expected):
    """Its median before it is limited, and after that: ε/√8 of the targets' root mean square."""
    task = fixed()
    (batch,) = task.evaluation_batches(512, 0, dtype)
    errors = task.floor(batch, None)["squared_error"]
    assert float(errors.median()) == pytest.approx(expected, rel=0.15)
    limited = floor(task, [batch])["squared_error"]
    least = torch.finfo(dtype).eps ** 2 / 8 * float(batch.target.square().mean())
    assert np.median(limited) == pytest.approx(least, rel=1e-6, abs=0)


def test_targets_are_float64_answers_to_rounded_inputs():
    batch = fixed(target="weights").evaluation_batches(8, 0, torch.float32)[0]
    w = batch.target.transpose(1, 2)
    assert torch.equal(w, w.float().double())
    clean = batch.prompt.x.double() @ w
    assert torch.equal(batch.prompt.y, clean.float())
    query = fixed().evaluation_batches(8, 0, torch.float32)[0]
    pairs = [zip(*row, strict=True) for row in zip(query.prompt.query[:, 0].tolist(),
                                                   w[..., 0].tolist(), strict=True)]  # fmt: skip
    exact = [float(sum(Fraction(p) * Fraction(q) for p, q in pair)) for pair in pairs]
    assert query.target[:, 0, 0].tolist() == exact
    assert not torch.equal(query.target, query.target.float().double())


@pytest.mark.parametrize("kappa", [1.0, 100.0])
def test_every_design_matrix_has_the_condition_number(kappa):
    task = fixed(condition_number=kappa)
    training = training_batch(task, 5, torch.Generator().manual_seed(1), torch.float64)
    for batch in (task.evaluation_batches(5, 0, torch.float64)[0], training):
        values = torch.linalg.svdvals(batch.prompt.x)
        assert torch.allclose(values[:, 0] / values[:, -1], torch.tensor(kappa).double())
        assert torch.allclose(values.square().sum(1), torch.tensor(100.0).double())


@pytest.mark.parametrize("dim", [2, 5])
def test_conditioned_designs_favor_no_sign(dim):
    (batch,) = fixed(dim=dim, condition_number=1000).evaluation_batches(4096, 0, torch.float64)
    signs = (batch.prompt.x[:, : dim + 1] > 0).double().mean(dim=0)
    assert (signs - 0.5).abs().max() < 5 * 0.5 / 4096**0.5


def test_noise_is_in_y_but_not_in_the_target():
    noisy = fixed(noise=0.5).evaluation_batches(2048, 0, torch.float64)[0]
    clean = fixed().evaluation_batches(2048, 0, torch.float64)[0]
    assert torch.equal(noisy.target, clean.target)
    assert abs((noisy.prompt.y - clean.prompt.y).std().item() - 0.5) < 0.01


def test_training_data_has_the_stated_noise_and_scale():
    task = fixed(noise=0.5, target="weights")
    batch = training_batch(task, 4096, torch.Generator().manual_seed(0), torch.float64)
    residual = batch.prompt.y - batch.prompt.x @ batch.target.transpose(1, 2)
    assert abs(residual.std().item() - 0.5) < 0.01
    assert abs(batch.prompt.x.std().item() - 1.0) < 0.01
    assert abs(batch.target.std().item() - 1.0) < 0.02


def test_weight_error_and_squared_error_agree_with_numpy():
    task = fixed(target="weights")
    batch = task.evaluation_batches(3, 0, torch.float64)[0]
    metrics = task.metrics(torch.zeros_like(batch.target), batch)
    w, q = batch.target.numpy()[:, 0], batch.prompt.query.numpy()[:, 0]
    np.testing.assert_allclose(metrics["weight_error"], (w**2).sum(1))
    np.testing.assert_allclose(metrics["squared_error"], (w * q).sum(1) ** 2)


def test_derived_evaluation_inputs_have_golden_values():
    batch = fixed(noise=0.1).evaluation_batches(2, 0, torch.float64)[0]
    expected = [
        [1.8742059541678333, 1.868263163760275, -1.5021068536910007],
        [-2.5829686198040775, 0.773539105616981, -0.20411396978754073],
    ]
    np.testing.assert_allclose(batch.prompt.y[:, :3, 0].numpy(), expected, rtol=1e-12)


def test_evaluation_does_not_depend_on_torch_s_generator():
    torch.manual_seed(1)
    first = fixed().evaluation_batches(4, 0, torch.float32)[0]
    torch.manual_seed(2)
    second = fixed().evaluation_batches(4, 0, torch.float32)[0]
    assert torch.equal(first.prompt.tokens, second.prompt.tokens)
    other = fixed().evaluation_batches(4, 1, torch.float32)[0]
    assert not torch.equal(first.prompt.tokens, other.prompt.tokens)


def test_every_prefix_statistic_is_in_the_summary():
    task = prefixes(dim=2, examples=3)
    errors = floor(task, task.evaluation_batches(64, 0, torch.float64))["prefix_error"]
    assert errors.shape == (64, 4)
    assert summarize(errors[None]).mean == pytest.approx(errors.mean())


def test_a_condition_number_needs_enough_examples():
    for changes, message in (
        ({"dim": 1}, "needs more than one dimension"),
        ({"condition_number": 1e13}, "less than or equal to 1e|1000000000000"),
    ):
        args = {"dim": 5, "examples": 9, "condition_number": 10, **changes}
        with pytest.raises(UsageError, match=message):
            parse_config(FixedConfig, args, "task x")
    with pytest.raises(UsageError, match="at least as many examples"):
        parse_config(FixedConfig, {"dim": 5, "examples": 4, "condition_number": 10}, "task x")


def test_the_log_loss_affects_training_only():
    mean, log = (load_task("least-squares", target="weights", loss=v) for v in ("mean", "log"))
    prediction, target = torch.rand(2, 4, 1, 5, dtype=torch.float64)
    torch.testing.assert_close(log.loss(prediction, target), mean.loss(prediction, target).log())
    assert torch.isfinite(log.loss(target, target)).all()
    assert log.evaluation_digest(8, 0) == mean.evaluation_digest(8, 0)
    assert "loss" not in mean.config.model_dump()
