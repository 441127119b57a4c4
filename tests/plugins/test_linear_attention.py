"""Linear attention: models conform, and one trained layer reaches the closed form."""

from __future__ import annotations

import pytest

from iclbench import UsageError, load_task, run
from iclbench.runs.checks import check_architecture
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_linear_attention.architecture import (
    ExtendedConfig,
    ExtendedLinearSelfAttention,
    LinearSelfAttention,
    MatrixConfig,
)
from iclbench_linear_attention.forms import designed_layout
from iclbench_linear_attention.tokens import ELSATokens, LSATokens, TokensConfig


@pytest.mark.parametrize(
    ("architecture", "config"),
    [
        (LinearSelfAttention, MatrixConfig(layers=2)),
        (LinearSelfAttention, MatrixConfig(form="enumerated", layers=2, mlp=True, heads=2)),
        (LinearSelfAttention, MatrixConfig(layers=0)),
        (LinearSelfAttention, MatrixConfig(blocks=2, shared=True)),
        (ExtendedLinearSelfAttention, ExtendedConfig(layers=1)),
        (ExtendedLinearSelfAttention, ExtendedConfig(form="designed", layers=1, mlp=True)),
    ],
)
@pytest.mark.parametrize("name", ["ridge", "least-squares"])
def test_matrix_models_conform(architecture, config, name):
    check_architecture(architecture(), load_task(name, dim=3, examples=5), config)


@pytest.mark.parametrize("architecture", [LSATokens, ELSATokens])
@pytest.mark.parametrize(
    "args", [{}, {"causal": False}, {"layers": 2, "mlp": True, "heads": 2, "layer_norm": True}]
)
def test_token_models_conform(architecture, args):
    config = TokensConfig(width=8, **args)
    check_architecture(architecture(), LeastSquares(FixedConfig(examples=6)), config)
    check_architecture(architecture(), RidgeRegression(RidgeConfig(examples=6)), config)


def test_token_models_conform_on_prefixes():
    task = LeastSquaresPrefixes(LeastSquaresConfig(dim=2, examples=4))
    for architecture in (LSATokens(), ELSATokens()):
        check_architecture(architecture, task, TokensConfig(width=8, layers=2))


def test_shared_modules_have_one_set_of_parameters():
    task = RidgeRegression(RidgeConfig(dim=2, examples=4))
    counts = []
    for shared in (True, False):
        config = MatrixConfig(layers=4, shared=shared)
        model = LinearSelfAttention().build(task.signature, config)
        counts.append(sum(p.numel() for p in model.parameters()))
    s = designed_layout(4, 2).columns
    assert counts == [2 * 9 * s * s, 5 * 9 * s * s]


def test_unsupported_targets_are_refused():
    prefixes = LeastSquaresPrefixes(LeastSquaresConfig())
    assert "not prefixes" in LinearSelfAttention().supports(prefixes.signature, MatrixConfig())
    with pytest.raises(UsageError, match="least-squares-prefixes"):
        run(model="elsa", task="least-squares-prefixes", weights="ridge-gd")


def test_arguments_that_contradict_a_construction_are_refused(tmp_path):
    for weights in ({"weights": "ridge-gd"}, {"init": "ridge-gd"}):
        with pytest.raises(UsageError, match=r"layers=7: the construction has layers=2"):
            run(model="lsa", task="ridge", weights_args={"steps": 2}, model_args={"layers": 7},
                out=tmp_path, **weights)  # fmt: skip


def test_step_size_is_refused_if_the_prompt_states_one(tmp_path):
    with pytest.raises(UsageError, match="the prompts state a step size; omit the model's step"):
        run(model="lsa", task="ridge", weights="ridge-gd", model_args={"step": 3}, out=tmp_path)


@pytest.mark.slow
def test_trained_layer_of_lsa_reaches_the_closed_form(tmp_path):
    """The error is D(D+1)/(N+D+1) = 1.1538, as of one gradient step with η = N/(N+D+1) = 0.769."""
    record = run(
        model="lsa-tokens",
        task="least-squares",
        recipe="linear-attention",
        seeds=3,
        eval_prompts=65_536,
        metrics=("alignment",),
        out=tmp_path,
    )
    best = run(
        model="gradient-descent",
        task="least-squares",
        model_args={"steps": 1, "step_size": 20 / 26},
        eval_prompts=65_536,
        out=tmp_path,
    )
    for seed in record.main.seeds:
        assert seed["squared_error"].mean == pytest.approx(30 / 26, rel=0.02)
        assert seed["squared_error"].mean == pytest.approx(
            best.metrics["squared_error"].mean, rel=0.01
        )
        assert seed["alignment_steps"].median == 1
        assert seed["alignment_step_size"].median == pytest.approx(20 / 26, rel=0.05)
        assert seed["alignment_cosine"].median > 0.999
