"""The block form on regression prompts: its layers, its invariances, one step of descent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import Regression, UsageError, load_task, run
from iclbench_linear_transformer.architecture import LinearTransformer, LinearTransformerConfig


def prompt_of(n: int, dim: int, queries: int = 2) -> Regression:
    generator = torch.Generator().manual_seed(n + 10 * dim)
    x, query, y = (
        torch.randn(3, count, width, generator=generator, dtype=torch.float64)
        for count, width in ((n, dim), (queries, dim), (n, 1))
    )
    return Regression(x, x, y, query)


def model(n: int = 6, dim: int = 3, target: str = "query", **config):
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
def test_a_layer_is_the_sum_over_the_context_with_block_matrices(n, dim, heads, ones, training):
    """As it is evaluated, and as it is trained."""
    prompt = prompt_of(n, dim)
    network = model(n, dim, layers=2, heads=heads, init_std=0.3, ones=ones).train(training)
    found = network(prompt).detach().numpy()
    for i in range(3):
        x, y, query = (t[i].numpy() for t in (prompt.x, prompt.y, prompt.query))
        e = np.concatenate([np.c_[x, y], np.c_[query, np.zeros(len(query))]])
        for layer in network.layers:
            change = np.zeros_like(e)
            for P, Q in zip(*(b.detach().numpy() for b in layer.blocks()), strict=True):
                big = [
                    np.block(
                        [
                            [m[0, 0] * np.eye(dim), m[0, 1] * np.ones((dim, 1))],
                            [m[1, 0] * np.ones((1, dim)), m[1:, 1:]],
                        ]
                    )
                    for m in (P, Q)
                ]
                for token in range(len(e)):
                    for j in range(n):
                        change[token] += (e[j] @ big[1] @ e[token]) * (big[0] @ e[j])
            e = e + change
        np.testing.assert_allclose(found[i, :, 0], e[n:, -1], rtol=1e-9, atol=1e-12)


def test_one_layer_with_the_best_step_has_the_error_of_one_step_of_descent():
    # D(D + 1)/(N + D + 1) at η = N/(N + D + 1): 1.1538 for D = 5, N = 20.
    task = load_task("least-squares")
    network = model(20, 5, layers=1, ones=False, normalize=True)
    state = {"P": torch.zeros(1, 1, 1), "Q": torch.full((1, 1, 1), 20 / 26)}
    state |= {"p": torch.ones(1), "q": torch.zeros(1)}
    network.layers[0].load_state_dict(state)
    (batch,) = task.evaluation_batches(40_000, 0, torch.float64)
    errors = (network(batch.prompt).detach() - batch.target).square().flatten()
    assert abs(errors.mean() - 30 / 26) < 4 * errors.std() / 200


@given(factor=st.floats(1e-3, 1e3))
def test_homogeneous_it_answers_in_proportion_to_y(factor):
    prompt = prompt_of(5, 3)
    network = model(5, 3, layers=3, init_std=0.3, homogeneous=True)
    found = network(prompt._replace(y=factor * prompt.y)).detach()
    np.testing.assert_allclose(found, factor * network(prompt).detach(), rtol=1e-9)
    assert torch.isfinite(network(prompt._replace(y=0 * prompt.y))).all()


def test_normalized_it_does_not_know_how_often_the_examples_are_repeated():
    prompt = prompt_of(5, 3)
    network = model(5, 3, layers=3, init_std=0.3, normalize=True, ones=False)
    twice = prompt._replace(x=prompt.x.repeat(1, 2, 1), y=prompt.y.repeat(1, 2, 1))
    # A mean over the context is the same for two copies of it.
    np.testing.assert_allclose(
        network(twice).detach(), network(prompt).detach(), rtol=1e-9, atol=1e-12
    )


def test_without_ones_its_weights_are_what_it_answers_with():
    prompt = prompt_of(6, 3)
    arguments = {"layers": 3, "init_std": 0.3, "ones": False, "homogeneous": True}
    weights = model(target="weights", **arguments)(prompt).detach()
    assert weights.shape == (3, 1, 3)
    answers = model(**arguments)(prompt).detach()
    np.testing.assert_allclose(prompt.query @ weights.mT, answers, rtol=1e-9, atol=1e-12)


def test_the_full_form_is_for_systems(tmp_path):
    with pytest.raises(UsageError, match="form=block takes regression too"):
        run(model="linear-transformer", task="least-squares", model_args={"form": "full"},
            out=tmp_path)  # fmt: skip


def test_it_learns_least_squares_in_a_few_steps(tmp_path):
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
    assert "loss" not in record.evaluation.task_args
    assert min(seed.metrics["squared_error"].median for seed in record.seeds) < 0.03
