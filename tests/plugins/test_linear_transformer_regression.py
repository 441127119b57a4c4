"""The block form on regression prompts: layers, invariances, one step of gradient descent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import Regression, TrainingContext, UsageError, load_task, run, training_form
from iclbench_linear_transformer.architecture import LinearTransformer, LinearTransformerConfig


def make_prompt(n: int, dim: int, queries: int = 2) -> Regression:
    generator = torch.Generator().manual_seed(n + 10 * dim)
    x, query, y = (
        torch.randn(3, count, width, generator=generator, dtype=torch.float64)
        for count, width in ((n, dim), (queries, dim), (n, 1))
    )
    return Regression(x, x, y, query)


def make_model(n: int = 6, dim: int = 3, target: str = "query", **config):
    torch.manual_seed(0)
    signature = load_task("least-squares", dim=dim, examples=n, target=target).signature
    return LinearTransformer().build(signature, LinearTransformerConfig(**config)).double()


@given(
    n=st.integers(2, 6),
    dim=st.integers(1, 4),
    heads=st.integers(1, 2),
    ones=st.booleans(),
    training=st.booleans(),
)
def test_a_layer_equals_sums_over_the_context_with_block_matrices(n, dim, heads, ones, training):
    """In the paper's layout and in that of training."""
    prompt = make_prompt(n, dim)
    network = make_model(n, dim, layers=2, heads=heads, init_std=0.3, ones=ones)
    context = TrainingContext(torch.device("cpu"), torch.float64, len(prompt.x))
    form = training_form(network, context) if training else network
    assert (form is network) is not training
    answers = form(prompt).detach().numpy()
    for i in range(3):
        x, y, query = (t[i].numpy() for t in (prompt.x, prompt.y, prompt.query))
        e = np.concatenate([np.c_[x, y], np.c_[query, np.zeros(len(query))]])
        for layer in network.layers:
            change = np.zeros_like(e)
            for P, Q in zip(*(b.detach().numpy() for b in layer.blocks()), strict=True):
                whole_p, whole_q = (
                    np.block(
                        [
                            [m[0, 0] * np.eye(dim), m[0, 1] * np.ones((dim, 1))],
                            [m[1, 0] * np.ones((1, dim)), m[1:, 1:]],
                        ]
                    )
                    for m in (P, Q)
                )
                for token in range(len(e)):
                    for j in range(n):
                        change[token] += (e[j] @ whole_q @ e[token]) * (whole_p @ e[j])
            e = e + change
        np.testing.assert_allclose(answers[i, :, 0], e[n:, -1], rtol=1e-9, atol=1e-12)


def test_one_layer_with_the_best_step_has_the_error_of_one_gradient_step():
    # D(D + 1)/(N + D + 1) at η = N/(N + D + 1): 1.1538 for D = 5, N = 20.
    task = load_task("least-squares")
    network = make_model(20, 5, layers=1, ones=False, normalize=True)
    state = {"P": torch.zeros(1, 1, 1), "Q": torch.full((1, 1, 1), 20 / 26)}
    state |= {"p": torch.ones(1), "q": torch.zeros(1)}
    network.layers[0].load_state_dict(state)
    (batch,) = task.evaluation_batches(40_000, 0, torch.float64)
    errors = (network(batch.prompt).detach() - batch.target).square().flatten()
    assert abs(errors.mean() - 30 / 26) < 4 * errors.std() / 200


@given(factor=st.floats(1e-3, 1e3))
def test_homogeneous_answers_are_proportional_to_y(factor):
    prompt = make_prompt(5, 3)
    network = make_model(5, 3, layers=3, init_std=0.3, homogeneous=True)
    scaled = network(prompt._replace(y=factor * prompt.y)).detach()
    np.testing.assert_allclose(scaled, factor * network(prompt).detach(), rtol=1e-9)
    assert torch.isfinite(network(prompt._replace(y=0 * prompt.y))).all()


def test_normalize_makes_answers_independent_of_repeated_examples():
    prompt = make_prompt(5, 3)
    network = make_model(5, 3, layers=3, init_std=0.3, normalize=True, ones=False)
    twice = prompt._replace(x=prompt.x.repeat(1, 2, 1), y=prompt.y.repeat(1, 2, 1))
    # A mean over the context equals the mean over two copies of it.
    np.testing.assert_allclose(
        network(twice).detach(), network(prompt).detach(), rtol=1e-9, atol=1e-12
    )


def test_without_ones_the_answer_is_the_product_of_query_and_weights():
    prompt = make_prompt(6, 3)
    arguments = {"layers": 3, "init_std": 0.3, "ones": False, "homogeneous": True}
    weights = make_model(target="weights", **arguments)(prompt).detach()
    assert weights.shape == (3, 1, 3)
    answers = make_model(**arguments)(prompt).detach()
    np.testing.assert_allclose(prompt.query @ weights.mT, answers, rtol=1e-9, atol=1e-12)


def test_the_full_form_refuses_regression(tmp_path):
    with pytest.raises(UsageError, match="form=block takes regression too"):
        run(model="linear-transformer", task="least-squares", model_args={"form": "full"},
            out=tmp_path)  # fmt: skip


@pytest.mark.slow
def test_training_learns_least_squares(tmp_path):
    record = run(
        model="linear-transformer",
        task="least-squares",
        task_args={"dim": 2, "examples": 8, "target": "weights", "loss": "log"},
        model_args={"layers": 2, "ones": False, "normalize": True, "homogeneous": True},
        recipe="linear-attention",
        recipe_args={"steps": 800, "clip": 1.0},
        seeds=2,
        eval_prompts=256,
        out=tmp_path,
    )
    assert record.parameters == 2 * 4
    assert "loss" not in record.main.task_args
    assert min(seed["squared_error"].median for seed in record.main.seeds) < 0.03
