"""The task linear-system: spectra, exact answers, padding and sizes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import EvaluationContext, UsageError, load_task, training_batch
from iclbench.api.config import parse_config
from iclbench.kit.tasks import check_task
from iclbench.runs.evaluate import evaluate, floor
from iclbench_linear_systems import spectra
from iclbench_linear_systems.config import LinearSystemConfig
from iclbench_linear_systems.spectra import eigenvalues, symmetric
from iclbench_linear_systems.task import LinearSystems

CPU = torch.device("cpu")


def make_task(**config) -> LinearSystems:
    return LinearSystems(parse_config(LinearSystemConfig, config, "task linear-system"))


@pytest.mark.parametrize("spectrum", ["log-uniform", "uniform", "clustered", "outlier"])
@given(n=st.integers(1, 12), kappa=st.sampled_from([1.0, 10.0, 1e4]), seed=st.integers(0, 99))
def test_every_matrix_has_the_condition_number(spectrum, n, kappa, seed):
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(3, n, generator=generator, dtype=torch.float64)
    normal = torch.randn(3, n, n, generator=generator, dtype=torch.float64)
    a = symmetric(normal, eigenvalues(uniform, kappa, spectrum))
    assert torch.equal(a, a.mT)
    values = torch.linalg.eigvalsh(a)
    assert values[:, -1].numpy() == pytest.approx(1.0)
    if n > 1:
        assert values[:, 0].numpy() == pytest.approx(1.0 / kappa, abs=1e-13)


def test_spectra_have_their_named_distributions():
    generator = torch.Generator().manual_seed(0)
    uniform = torch.rand(20_000, 4, generator=generator, dtype=torch.float64)
    names = ("log-uniform", "uniform", "clustered", "outlier")
    inner = {name: eigenvalues(uniform, 100.0, name)[:, 1:3] for name in names}
    logs = inner["log-uniform"].log10()
    assert float(logs.mean()) == pytest.approx(-1.0, abs=0.02)
    assert float(logs.var()) == pytest.approx(4 / 12, rel=0.03)
    assert float(inner["uniform"].mean()) == pytest.approx(0.505, abs=0.01)
    low = inner["clustered"] < 0.5
    assert float(low.double().mean()) == pytest.approx(0.5, abs=0.02)
    assert inner["clustered"][low].max() <= 0.0105
    assert inner["clustered"][~low].min() >= 0.95
    assert inner["outlier"].max() <= 0.0105


def test_a_large_batch_is_diagonalized_in_parts(monkeypatch):
    normal = torch.randn(7, 3, 3, generator=torch.Generator().manual_seed(0))
    whole = spectra.basis_by_eigh(normal)
    monkeypatch.setattr(spectra, "AT_ONCE", 3)
    assert torch.equal(spectra.basis_by_eigh(normal), whole)


@pytest.mark.parametrize("basis", [spectra.basis_by_qr, spectra.basis_by_eigh])
def test_eigenvectors_are_haar_distributed(monkeypatch, basis):
    """E[A] is a multiple of I; E[A₁₁²] and E[A₁₂²] match Haar measure on the orthogonal group."""
    monkeypatch.setattr(spectra, "basis_by_qr", basis)
    n = 3
    values = torch.tensor([[1.0, 0.5, 0.1]], dtype=torch.float64).expand(40_000, n)
    generator = torch.Generator().manual_seed(0)
    a = symmetric(torch.randn(40_000, n, n, generator=generator, dtype=torch.float64), values)
    trace, square = 1.6, 1.26
    torch.testing.assert_close(a.mean(dim=0), trace / n * torch.eye(n).double(), atol=0.01, rtol=0)
    expected = (trace**2 + 2 * square) / (n * (n + 2))
    assert float(a[:, 0, 0].square().mean()) == pytest.approx(expected, rel=0.01)
    expected = (n * square - trace**2) / (n * (n - 1) * (n + 2))
    assert float(a[:, 0, 1].square().mean()) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"sizes": "2-4"},
        {"sizes": "2-4", "mixed": True, "loss": "log", "start": "normal"},
        {"sizes": 3, "evaluate": "2,5", "spectrum": "outlier", "scale": 7.0},
    ],
    ids=str,
)
def test_the_task_conforms(config):
    check_task(make_task(**config), n=6)


def solve_exactly(a, b):
    """Solve ax = b in rational arithmetic."""
    rows = [[*map(Fraction, row), Fraction(right)] for row, right in zip(a, b, strict=True)]
    n = len(rows)
    for k in range(n):
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [p - rows[i][k] * q for p, q in zip(rows[i], rows[k], strict=True)]
    return [float(row[n]) for row in rows]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_targets_are_exact_answers_to_rounded_prompts(dtype):
    batches = make_task(sizes="2,5", condition_number=1000).evaluation_batches(8, 0, dtype)
    for batch in batches:
        for a, b, x in zip(batch.prompt.a, batch.prompt.b, batch.target[:, 0], strict=True):
            assert x.tolist() == solve_exactly(a.tolist(), b.tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_attainable_error_is_one_rounding_in_the_dtype(dtype):
    task = make_task(sizes="2-9")
    errors = floor(task, task.evaluation_batches(256, 0, dtype))
    eps = torch.finfo(dtype).eps
    # Half a unit in the last place of the root mean square, about 1, and at most of the largest.
    assert (
        eps**2 / 16 <= errors["squared_error"].min() <= errors["squared_error"].max() < 4 * eps**2
    )
    assert np.median(errors["relative_residual"]) < eps
    by_size = errors["squared_error_by_size"]
    assert by_size.shape == (256, 8)
    np.testing.assert_allclose(errors["squared_error"], by_size.mean(axis=1))


def test_metrics_agree_with_numpy():
    task = make_task(sizes=3)
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    metrics = task.metrics(batch.target + 0.1, batch)
    assert metrics["squared_error"].tolist() == pytest.approx([0.01] * 4)
    a, b = batch.prompt.a.numpy(), batch.prompt.b.numpy()
    x = batch.target[:, 0].numpy() + 0.1
    expected = [np.linalg.norm(a[i] @ x[i] - b[i]) / np.linalg.norm(b[i]) for i in range(4)]
    assert metrics["relative_residual"].tolist() == pytest.approx(expected)


def test_a_batch_has_one_size_or_mixed_sizes():
    sizes = {}
    for mixed in (False, True):
        task = make_task(sizes="2-6", mixed=mixed)
        generator = torch.Generator().manual_seed(0)
        batches = task.training_batches(40, 16, [generator], torch.float32)
        assert batches.prompt.a.shape == (1, 40, 16, 6, 6)
        assert batches.target.shape == (1, 40, 16, 1, 6)
        sizes[mixed] = batches.prompt.size[0]
        assert set(sizes[mixed].flatten().tolist()) == {2, 3, 4, 5, 6}
    assert (sizes[False] == sizes[False][:, :1]).all()
    assert not (sizes[True] == sizes[True][:, :1]).all()


def test_padding_is_zero_in_the_prompt_and_ignored_by_the_loss():
    task = make_task(sizes="2-6", mixed=True, start="normal")
    batch = training_batch(task, 64, torch.Generator().manual_seed(0), torch.float64)
    for i, n in enumerate(batch.prompt.size.tolist()):
        a, b, x = batch.prompt.a[i], batch.prompt.b[i], batch.target[i, 0]
        assert a[n:].abs().sum() == a[:, n:].abs().sum() == b[n:].abs().sum() == 0
        assert batch.prompt.x0[i, n:].abs().sum() == 0
        assert (x.isnan() == (torch.arange(6) >= n)).all()
        torch.testing.assert_close(a[:n, :n] @ x[:n], b[:n])
    sevens = torch.full((64, 1, 6), 7.0, dtype=torch.float64)
    prediction = torch.where(batch.target.isnan(), sevens, batch.target.nan_to_num() + 0.5)
    prediction = prediction.requires_grad_()
    loss = task.loss(prediction, batch.target)
    torch.testing.assert_close(loss, torch.full((64,), 0.25, dtype=torch.float64))
    (grad,) = torch.autograd.grad(loss.sum(), prediction)
    assert (grad[batch.target.isnan()] == 0).all()
    logs = make_task(sizes="2-6", loss="log").loss(prediction, batch.target)
    torch.testing.assert_close(logs, loss.log())


def test_training_and_evaluation_have_the_same_distribution():
    task = make_task(sizes=4, condition_number=50)
    training = training_batch(task, 4096, torch.Generator().manual_seed(0), torch.float64)
    (evaluation,) = task.evaluation_batches(4096, 0, torch.float64)
    for name in ("a", "b"):
        a, b = getattr(training.prompt, name), getattr(evaluation.prompt, name)
        assert float(a.std()) == pytest.approx(float(b.std()), rel=0.05)
    spectra = [torch.linalg.eigvalsh(b.prompt.a).log().mean(dim=0) for b in (training, evaluation)]
    torch.testing.assert_close(*spectra, atol=0.1, rtol=0)


def test_training_settings_do_not_change_the_evaluation():
    first, other = (
        make_task(evaluate="3,5"),
        make_task(sizes="2-9", evaluate="3,5", mixed=True, loss="log"),
    )
    assert first.evaluation_digest(4, 0) == other.evaluation_digest(4, 0)
    assert LinearSystems.training_only == {"sizes", "mixed", "loss"}
    batches = (task.evaluation_batches(4, 0, torch.float32) for task in (first, other))
    for a, b in zip(*batches, strict=True):
        assert torch.equal(a.prompt.a, b.prompt.a)


def test_evaluation_prompts_of_a_size_are_not_padded():
    task = make_task(sizes="2-4")
    shapes = []

    class Model(torch.nn.Module):
        def forward(self, prompt):
            shapes.append(tuple(prompt.a.shape))
            return torch.zeros_like(prompt.b).unsqueeze(1)

    context = EvaluationContext(CPU, torch.Generator())
    metrics = evaluate(task, Model(), task.evaluation_batches(5, 0, torch.float32), context, [])
    assert shapes == [(5, 2, 2), (5, 3, 3), (5, 4, 4)]
    assert metrics["squared_error_by_size"].shape == (5, 3)


def test_the_attainable_error_does_not_depend_on_the_condition_number():
    """In float32 many of these matrices are not even positive definite."""
    task = make_task(condition_number=1e9)
    (batch,) = task.evaluation_batches(32, 0, torch.float32)
    squares = batch.target.square().mean(dim=(1, 2)).numpy()
    errors = task.floor(batch, EvaluationContext(CPU, torch.Generator()))["squared_error"].numpy()
    assert (errors < torch.finfo(torch.float32).eps ** 2 * squares).all()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sizes": "9-2"}, "empty range"),
        ({"sizes": "9-2,5"}, "empty range"),
        ({"sizes": "2-4-9"}, "not a size, a list or a range"),
        ({"sizes": 3, "mixed": True}, "several sizes"),
        ({"sizes": "1-3"}, "greater than or equal to 2"),
        ({"sizes": "two"}, "not a size, a list or a range"),
        ({"sizes": "2,2"}, "distinct"),
        ({"condition_number": 0.5}, "greater than or equal to 1"),
        ({"evaluate": ""}, "not a size, a list or a range"),
        ({"spectrum": "flat"}, "log-uniform"),
        ({"spectrum": "uniform", "sizes": 2}, "spectrum=uniform needs sizes above 2"),
        ({"spectrum": "uniform", "condition_number": 1}, "a condition_number above 1"),
    ],
    ids=str,
)
def test_bad_configurations_are_refused(config, message):
    with pytest.raises(UsageError, match=message):
        make_task(**config)


def test_spectra_are_shifts_where_they_change_the_matrices():
    def spectra_of(**config):
        shifts = make_task(**config).shifts
        return {name for name in shifts if name.startswith("spectrum-")}

    assert spectra_of()
    assert not spectra_of(sizes=(2,))
    assert not spectra_of(condition_number=1)


@pytest.mark.parametrize("sizes", ["2-999999999999", "1-99999999999999999999"])
def test_a_range_is_no_bomb(sizes):
    """A stranger's record could name more sizes than fit into memory, or into 64 bits."""
    with pytest.raises(UsageError, match="at most 1,000 sizes") as caught:
        load_task("linear-system", sizes=sizes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spectrum", ["clustered", "outlier", "uniform"])
def test_every_shift_of_small_systems_has_a_configuration(spectrum):
    task = make_task(sizes=(2,), evaluate=(4,), spectrum=spectrum)
    assert "size-half" not in task.shifts
    for name in task.shifts:
        task.shifted(name)
    assert "size-half" in make_task(sizes=(2,), evaluate=(4,)).shifts
