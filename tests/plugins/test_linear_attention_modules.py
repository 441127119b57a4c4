"""Multi-head LSA and ELSA, and their training forms."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_tensors import randn

from iclbench import TrainingContext, run, training_form
from iclbench.runs.checks import ConformanceError, check_architecture
from iclbench.training.gradients.capacity import Operators
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_linear_attention import architecture as architecture_module
from iclbench_linear_attention.architecture import (
    ExtendedLinearSelfAttention,
    LinearSelfAttention,
    MatrixConfig,
)
from iclbench_linear_attention.modules import ELSA, LSA
from iclbench_linear_attention.operators import elsa, lsa

ALONE = TrainingContext(torch.device("cpu"), torch.float64, batch_size=4)
sizes = st.integers(1, 7)


@pytest.mark.parametrize(("m", "n"), [(3, 8), (8, 3)])
def test_heads_are_summed(m, n):
    H = randn(0, 2, 4, m, n)
    module = ELSA(m, n, heads=3, init_std=0.5).double()
    torch.nn.init.normal_(module.biases)
    pairs = [[(module.weights[i, k], module.biases[i, k]) for i in range(3)] for k in range(3)]
    torch.testing.assert_close(module(H), sum(elsa(H, *pair) for pair in pairs))
    plain = LSA(n, heads=2, init_std=0.5).double()
    expected = sum(lsa(H, *plain.weights[:, k]) for k in range(2))
    torch.testing.assert_close(plain(H), expected)


def test_elsa_without_biases_is_lsa():
    H = randn(0, 4, 5)
    wide, plain = ELSA(4, 5, 2, 0.3).double(), LSA(5, 2, 0.3).double()
    wide.weights.data = plain.weights.data
    assert torch.equal(wide(H), plain(H))


@given(
    m=sizes,
    n=sizes,
    heads=st.integers(1, 3),
    lead=st.sampled_from([(), (2,), (2, 3)]),
    causal=st.booleans(),
    data=st.data(),
)
def test_training_form_matches_the_module_at_any_rows(m, n, heads, lead, causal, data):
    module = LSA(n, heads, 0.5, causal).double()
    H = randn(0, *lead, m, n)
    start = data.draw(st.integers(0, m - 1))
    rows = slice(start, data.draw(st.integers(start + 1, m)), data.draw(st.integers(1, 2)))
    for positions, expected in ((None, module(H)), (rows, module(H)[..., rows, :])):
        form = training_form(module, replace(ALONE, positions=positions))
        torch.testing.assert_close(form(H), expected)


def test_subclass_has_no_training_form():
    """The form of LSA would ignore the biases of ELSA."""
    module = ELSA(4, 5, 2, 0.5)
    assert training_form(module, ALONE) is module
    assert training_form(module, replace(ALONE, positions=slice(0, 1))) is None


@pytest.mark.parametrize("architecture", [LinearSelfAttention, ExtendedLinearSelfAttention])
@pytest.mark.parametrize("args", [{}, {"layers": 2, "mlp": True, "heads": 1}, {"blocks": 3}])
def test_training_form_computes_only_one_row_of_the_output_module(architecture, args):
    task = RidgeRegression(RidgeConfig(dim=2, examples=3))
    config = architecture.Config(**{**args, "init_std": 0.1})
    model = architecture().build(task.signature, config).double()
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    form = training_form(model, replace(ALONE, replicas="vmapped"))
    with Operators() as model_operators:
        expected = model(batch.prompt)
    with Operators() as form_operators:
        prediction = form(batch.prompt)
    torch.testing.assert_close(prediction, expected)
    assert expected.abs().min() > 0
    assert form_operators.elements < model_operators.elements


def test_form_that_wrongly_accepts_replicas_is_vmapped_and_does_not_conform(monkeypatch, tmp_path):
    monkeypatch.setattr(architecture_module, "takes_replicas", lambda step, context: True)
    task = RidgeRegression(RidgeConfig(dim=2, examples=3))
    with pytest.raises(ConformanceError, match="its form for several replicas differs: "):
        check_architecture(LinearSelfAttention(), task, MatrixConfig(mlp=True))
    record = run(
        model="lsa", task="ridge", model_args={"mlp": True}, task_args={"dim": 2, "examples": 3},
        recipe="smoke", recipe_args={"steps": 2}, seeds=2, out=tmp_path,
    )  # fmt: skip
    assert (record.training.replicas, record.training.engine) == (2, "vmapped")
    assert "not leading: " in record.training.note


@pytest.mark.parametrize("heads", [1, 2])
def test_empty_batch_gives_an_empty_result(heads):
    for module in (LSA(5, heads, 0.1), ELSA(4, 5, heads, 0.1)):
        assert module(torch.randn(0, 4, 5)).shape == (0, 4, 5)
