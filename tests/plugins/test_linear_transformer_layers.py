"""The layers of the linear transformer against its block matrices, and its training form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from linear_transformer_models import model, prompts, task
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
    """The (4N + 1) × (4N + 1) matrix of blocks, in the order a, b, h₁, h₂, h₃ of the poster."""
    order, found = [0, 4, 1, 2, 3], []
    for s in order:
        row = []
        for t in order:
            value = float(blocks[s, t])
            shape = (1 if s == 4 else n, 1 if t == 4 else n)
            row.append(value * (np.eye(n) if shape == (n, n) else np.ones(shape)))
        found.append(row)
    return np.block(found)


@given(n=st.integers(2, 6), layers=st.integers(1, 3), heads=st.integers(1, 2))
def test_a_layer_is_the_poster_s_with_its_block_matrices(n, layers, heads):
    made = task(sizes=n, start="normal")
    (batch,) = made.evaluation_batches(2, 0, torch.float64)
    network = model(made, layers=layers, heads=heads, init_std=0.3)
    found = network.trajectory(batch.prompt).detach().numpy()
    for i in range(2):
        a, b, x0 = (t[i].numpy() for t in batch.prompt[:3])
        rows = np.concatenate([a, b[:, None], np.eye(n), np.eye(n), np.eye(n)], axis=1)
        e = np.concatenate([rows, np.concatenate([x0, np.ones(1 + 3 * n)])[None]])
        for k, layer in enumerate(network.layers):
            change = np.zeros_like(e)
            for blocks in zip(layer.P.detach(), layer.Q.detach(), strict=True):
                P, Q = (materialized(each, n) for each in blocks)
                for token in range(n + 1):
                    for j in range(n):
                        change[token] += (e[j] @ Q @ e[token]) * (P @ e[j])
            e = e + change
            np.testing.assert_allclose(found[i, k + 1], e[-1, :n], rtol=1e-9, atol=1e-9)


@given(n=st.integers(2, 6), layers=st.integers(1, 3), heads=st.integers(1, 2))
def test_without_ones_it_is_the_poster_s_with_zeros_there_and_turns_with_the_system(
    n, layers, heads
):
    prompt = prompts(n, start="normal").prompt
    network = model(task(sizes=n), layers=layers, heads=heads, init_std=0.3, ones=False)
    assert sum(p.numel() for p in network.parameters()) == 34 * heads * layers
    found = network.trajectory(prompt).detach()
    identity = torch.eye(n, dtype=torch.float64).expand(len(prompt.a), n, n)
    rows = [prompt.a, identity, identity, identity]
    query = [prompt.x0, *[torch.zeros_like(prompt.x0)] * 3]
    b, last = prompt.b, torch.ones_like(prompt.b[:, 0])
    for k, layer in enumerate(network.layers):
        new_rows, new_query, new_b, new_last = list(rows), list(query), b, last
        parameters = (layer.P, layer.Q, layer.p, layer.q)
        for P, Q, p, q in zip(*(each.detach() for each in parameters), strict=True):
            within, towards = q * b[:, :, None] * b[:, None], q * (b * last[:, None])
            for s in range(4):
                right = sum(Q[s, t] * rows[t] for t in range(4))
                within = within + right @ rows[s].mT
                asked = sum(Q[s, t] * query[t] for t in range(4))
                towards = towards + (rows[s] @ asked[..., None])[..., 0]
            for s in range(4):
                value = sum(P[s, t] * rows[t] for t in range(4))
                new_rows[s] = new_rows[s] + within @ value
                new_query[s] = new_query[s] + (towards[:, None] @ value)[:, 0]
            new_b = new_b + (within @ (p * b)[..., None])[..., 0]
            new_last = new_last + (towards * p * b).sum(1)
        rows, query, b, last = new_rows, new_query, new_b, new_last
        np.testing.assert_allclose(found[:, k + 1], query[0], rtol=1e-9, atol=1e-9)
    turn = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64)).Q
    turned = prompt._replace(
        a=turn @ prompt.a @ turn.mT, b=prompt.b @ turn.mT, x0=prompt.x0 @ turn.mT
    )
    np.testing.assert_allclose(
        network.trajectory(turned).detach(), found @ turn.mT, rtol=1e-8, atol=1e-8
    )


def test_the_full_form_is_the_poster_s():
    made = task(sizes=4, start="normal")
    (batch,) = made.evaluation_batches(2, 0, torch.float64)
    network = model(made, form="full", layers=2, embedding=3, init_std=0.3)
    found = network(batch.prompt).detach()
    for i in range(2):
        a, b, x0 = (t[i] for t in batch.prompt[:3])
        rows = torch.cat([a, b[:, None], network.embedding], dim=1)
        e = torch.cat([rows, torch.cat([x0, torch.ones(4).double()])[None]])
        for layer in network.layers:
            scores = e[:-1] @ layer.Q[0] @ e.T
            e = e + scores.T @ (e[:-1] @ layer.P[0].T)
        torch.testing.assert_close(found[i, 0], e[-1, :4])


def test_parameters_of_the_block_form_do_not_depend_on_the_size():
    counts = [
        sum(p.numel() for p in model(task(sizes=n), layers=3, heads=2).parameters()) for n in (2, 9)
    ]
    assert counts == [300, 300]


@given(n=st.integers(2, 5), extra=st.integers(1, 4))
def test_padding_changes_nothing(n, extra):
    prompt = prompts(n, start="normal").prompt
    pad = torch.nn.functional.pad
    grown = LinearSystem(
        pad(prompt.a, (0, extra, 0, extra)),
        pad(prompt.b, (0, extra)),
        pad(prompt.x0, (0, extra)),
        prompt.size,
    )
    for normalize in (False, True):
        network = model(task(sizes="2-9"), layers=3, heads=2, normalize=normalize, init_std=0.3)
        found, expected = network(grown), network(prompt)
        torch.testing.assert_close(found[..., :n], expected, rtol=1e-9, atol=1e-9)
        assert (found[..., n:] == 0).all()


@pytest.mark.parametrize("n", [4, 9, 30])
def test_multiply_adds_are_those_of_a_forward_pass(n):
    """torch counts the products of matrices; adding up the parts of a token is no such product."""
    prompt = prompts(n, count=1).prompt
    network = model(task(sizes=n), layers=2, heads=2).eval()
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
def test_the_training_form_is_the_model(n, extra, layers, heads, ones, scaled):
    """Laid out for products, the last layer for the query only; also on padded systems."""
    prompt = prompts(n, start="normal").prompt
    pad = torch.nn.functional.pad
    prompt = LinearSystem(
        pad(prompt.a, (0, extra, 0, extra)), *(pad(t, (0, extra)) for t in prompt[1:3]), prompt.size
    )
    how = {"normalize": scaled, "homogeneous": scaled, "ones": ones, "init_std": 0.3}
    network = model(task(sizes=n), layers=layers, heads=heads, **how)
    target = torch.randn(3, 1, n + extra, dtype=torch.float64)
    expected = losses_and_gradients(network, prompt, target)
    form = training_form(network, TrainingContext(torch.device("cpu"), torch.float64, 3))
    assert isinstance(form, FastBlockModel)
    found = losses_and_gradients(form, prompt, target)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@given(scale=st.floats(1e-3, 1e3))
def test_normalized_it_does_not_know_the_scale(scale):
    prompt = prompts(4).prompt
    network = model(task(sizes=4), normalize=True)
    scaled = prompt._replace(a=scale * prompt.a, b=scale * prompt.b)
    torch.testing.assert_close(network(scaled), network(prompt), rtol=1e-9, atol=1e-12)


@given(factor=st.floats(1e-3, 1e3), form=st.sampled_from(["block", "full"]))
def test_homogeneous_it_answers_in_proportion_to_b(factor, form):
    prompt = prompts(5, start="normal").prompt
    network = model(task(sizes=5), layers=3, init_std=0.3, form=form, homogeneous=True)
    scaled = prompt._replace(b=factor * prompt.b, x0=factor * prompt.x0)
    expected = factor * network(prompt).detach()
    np.testing.assert_allclose(network(scaled).detach(), expected, rtol=1e-9)
    nothing = prompt._replace(b=0 * prompt.b, x0=0 * prompt.x0)
    assert torch.isfinite(network(nothing)).all()
