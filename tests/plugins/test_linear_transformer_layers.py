"""The layers of the linear transformer against block matrices, and its form for training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from linear_transformer_models import make_model, make_prompt, make_task
from torch.utils.flop_counter import FlopCounterMode

from iclbench import (
    LinearSystem,
    TrainingContext,
    training_form,
)
from iclbench_linear_transformer.architecture import (
    multiply_adds,
)
from iclbench_linear_transformer.fast import FastBlockModel


def materialized(blocks, n):
    """The (4N + 1) × (4N + 1) matrix, in the poster's order a, b, h₁, h₂, h₃."""
    order, rows = [0, 4, 1, 2, 3], []
    for s in order:
        row = []
        for t in order:
            value = float(blocks[s, t])
            shape = (1 if s == 4 else n, 1 if t == 4 else n)
            row.append(value * (np.eye(n) if shape == (n, n) else np.ones(shape)))
        rows.append(row)
    return np.block(rows)


@given(n=st.integers(2, 6), layers=st.integers(1, 3), heads=st.integers(1, 2))
def test_a_layer_equals_the_poster_s_block_matrices(n, layers, heads):
    task = make_task(sizes=n, start="normal")
    (batch,) = task.evaluation_batches(2, 0, torch.float64)
    network = make_model(task, layers=layers, heads=heads, init_std=0.3)
    path = network.trajectory(batch.prompt).detach().numpy()
    for i in range(2):
        a, b, x0 = (t[i].numpy() for t in batch.prompt[:3])
        rows = np.concatenate([a, b[:, None], np.eye(n), np.eye(n), np.eye(n)], axis=1)
        e = np.concatenate([rows, np.concatenate([x0, np.ones(1 + 3 * n)])[None]])
        for k, layer in enumerate(network.layers):
            change = np.zeros_like(e)
            for blocks in zip(layer.P.detach(), layer.Q.detach(), strict=True):
                P, Q = (materialized(matrix, n) for matrix in blocks)
                for token in range(n + 1):
                    for j in range(n):
                        change[token] += (e[j] @ Q @ e[token]) * (P @ e[j])
            e = e + change
            np.testing.assert_allclose(path[i, k + 1], e[-1, :n], rtol=1e-9, atol=1e-9)


@given(n=st.integers(2, 6), layers=st.integers(1, 3), heads=st.integers(1, 2))
def test_without_ones_a_layer_has_no_blocks_of_ones_and_is_equivariant_to_rotations(
    n, layers, heads
):
    prompt = make_prompt(n, start="normal")
    network = make_model(make_task(sizes=n), layers=layers, heads=heads, init_std=0.3, ones=False)
    assert sum(p.numel() for p in network.parameters()) == 34 * heads * layers
    path = network.trajectory(prompt).detach()
    identity = torch.eye(n, dtype=torch.float64).expand(len(prompt.a), n, n)
    rows = [prompt.a, identity, identity, identity]
    query = [prompt.x0, *[torch.zeros_like(prompt.x0)] * 3]
    b, last = prompt.b, torch.ones_like(prompt.b[:, 0])
    for k, layer in enumerate(network.layers):
        new_rows, new_query, new_b, new_last = list(rows), list(query), b, last
        parameters = (layer.P, layer.Q, layer.p, layer.q)
        for P, Q, p, q in zip(*(tensor.detach() for tensor in parameters), strict=True):
            # Scores of the context for itself and for the query.
            within, to_query = q * b[:, :, None] * b[:, None], q * (b * last[:, None])
            for s in range(4):
                right = sum(Q[s, t] * rows[t] for t in range(4))
                within = within + right @ rows[s].mT
                image = sum(Q[s, t] * query[t] for t in range(4))
                to_query = to_query + (rows[s] @ image[..., None])[..., 0]
            for s in range(4):
                value = sum(P[s, t] * rows[t] for t in range(4))
                new_rows[s] = new_rows[s] + within @ value
                new_query[s] = new_query[s] + (to_query[:, None] @ value)[:, 0]
            new_b = new_b + (within @ (p * b)[..., None])[..., 0]
            new_last = new_last + (to_query * p * b).sum(1)
        rows, query, b, last = new_rows, new_query, new_b, new_last
        np.testing.assert_allclose(path[:, k + 1], query[0], rtol=1e-9, atol=1e-9)
    R = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64)).Q
    rotated = prompt._replace(a=R @ prompt.a @ R.mT, b=prompt.b @ R.mT, x0=prompt.x0 @ R.mT)
    np.testing.assert_allclose(
        network.trajectory(rotated).detach(), path @ R.mT, rtol=1e-8, atol=1e-8
    )


def test_the_full_form_equals_the_poster_s():
    task = make_task(sizes=4, start="normal")
    (batch,) = task.evaluation_batches(2, 0, torch.float64)
    network = make_model(task, form="full", layers=2, embedding=3, init_std=0.3)
    answers = network(batch.prompt).detach()
    for i in range(2):
        a, b, x0 = (t[i] for t in batch.prompt[:3])
        rows = torch.cat([a, b[:, None], network.embedding], dim=1)
        e = torch.cat([rows, torch.cat([x0, torch.ones(4).double()])[None]])
        for layer in network.layers:
            scores = e[:-1] @ layer.Q[0] @ e.T
            e = e + scores.T @ (e[:-1] @ layer.P[0].T)
        torch.testing.assert_close(answers[i, 0], e[-1, :4])


def test_the_block_form_s_parameters_do_not_depend_on_the_size():
    counts = [
        sum(p.numel() for p in make_model(make_task(sizes=n), layers=3, heads=2).parameters())
        for n in (2, 9)
    ]
    assert counts == [300, 300]


@given(n=st.integers(2, 5), extra=st.integers(1, 4))
def test_padding_does_not_affect_results(n, extra):
    prompt = make_prompt(n, start="normal")
    pad = torch.nn.functional.pad
    padded = LinearSystem(
        pad(prompt.a, (0, extra, 0, extra)),
        pad(prompt.b, (0, extra)),
        pad(prompt.x0, (0, extra)),
        prompt.size,
    )
    for normalize in (False, True):
        network = make_model(
            make_task(sizes="2-9"), layers=3, heads=2, normalize=normalize, init_std=0.3
        )
        answers, expected = network(padded), network(prompt)
        torch.testing.assert_close(answers[..., :n], expected, rtol=1e-9, atol=1e-9)
        assert (answers[..., n:] == 0).all()


@pytest.mark.parametrize("n", [4, 9, 30])
def test_multiply_adds_are_those_of_a_forward_pass(n):
    """Torch counts only matrix products, not the sums over the parts of a token."""
    prompt = make_prompt(n, count=1)
    network = make_model(make_task(sizes=n), layers=2, heads=2).eval()
    with FlopCounterMode(display=False) as counter:
        network(prompt)
    expected = multiply_adds(n, layers=2, heads=2)
    assert 0.9 * expected < counter.get_total_flops() / 2 <= expected


def losses_and_gradients(network, prompt, target):
    losses = (network(prompt) - target).square().mean(dim=(-2, -1))
    grads = torch.autograd.grad(losses.mean(), list(network.parameters()))
    return losses.detach(), grads


@given(
    n=st.integers(2, 5),
    extra=st.integers(0, 2),
    layers=st.integers(1, 3),
    heads=st.integers(1, 2),
    ones=st.booleans(),
    scaled=st.booleans(),
)
def test_the_training_form_equals_the_model(n, extra, layers, heads, ones, scaled):
    """Losses and gradients agree, on padded systems too."""
    prompt = make_prompt(n, start="normal")
    pad = torch.nn.functional.pad
    prompt = LinearSystem(
        pad(prompt.a, (0, extra, 0, extra)), *(pad(t, (0, extra)) for t in prompt[1:3]), prompt.size
    )
    settings = {"normalize": scaled, "homogeneous": scaled, "ones": ones, "init_std": 0.3}
    network = make_model(make_task(sizes=n), layers=layers, heads=heads, **settings)
    target = torch.randn(3, 1, n + extra, dtype=torch.float64)
    expected = losses_and_gradients(network, prompt, target)
    form = training_form(network, TrainingContext(torch.device("cpu"), torch.float64, 3))
    assert isinstance(form, FastBlockModel)
    actual = losses_and_gradients(form, prompt, target)
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


@given(scale=st.floats(1e-3, 1e3))
def test_normalize_makes_answers_independent_of_scale(scale):
    prompt = make_prompt(4)
    network = make_model(make_task(sizes=4), normalize=True)
    scaled = prompt._replace(a=scale * prompt.a, b=scale * prompt.b)
    torch.testing.assert_close(network(scaled), network(prompt), rtol=1e-9, atol=1e-12)


@given(factor=st.floats(1e-3, 1e3), form=st.sampled_from(["block", "full"]))
def test_homogeneous_answers_are_proportional_to_b(factor, form):
    prompt = make_prompt(5, start="normal")
    network = make_model(make_task(sizes=5), layers=3, init_std=0.3, form=form, homogeneous=True)
    scaled = prompt._replace(b=factor * prompt.b, x0=factor * prompt.x0)
    expected = factor * network(prompt).detach()
    np.testing.assert_allclose(network(scaled).detach(), expected, rtol=1e-9)
    zero = prompt._replace(b=0 * prompt.b, x0=0 * prompt.x0)
    assert torch.isfinite(network(zero)).all()
