"""Tasks that ask for ids at positions of their own, and the decoder of one state."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from iclbench import UNASKED, Batch, FactoredLogits, Signature, Text, load_task
from iclbench.nn.readout import StateDecoder, new_readout, read_positions, sinusoids
from iclbench.nn.tokens import rightness
from iclbench_transformer.architecture import Transformer, TransformerConfig


def asked_task():
    return load_task("mqar", vocabulary=16, length=16, pairs=2)


def test_loss_and_metrics_are_those_of_the_asked_positions():
    task = asked_task()
    (batch,) = task.evaluation_batches(5, 0, torch.float64)
    logits = torch.randn(5, 6, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss, metrics = task.loss(logits, batch.target), task.metrics(logits, batch)
    for b in range(5):
        asked = [p for p in range(6) if batch.target[b, p] != UNASKED]
        assert len(asked) == 2
        losses, right = [], []
        for p in asked:
            probabilities = logits[b, p].softmax(dim=0)
            losses.append(-math.log(probabilities[batch.target[b, p]]))
            right.append(float(probabilities.argmax() == batch.target[b, p]))
        assert float(loss[b]) == pytest.approx(sum(losses) / 2, rel=1e-12)
        assert float(metrics["nll"][b]) == pytest.approx(sum(losses) / 2, rel=1e-12)
        assert float(metrics["accuracy"][b]) == sum(right) / 2


def test_factors_give_the_loss_and_gradient_of_their_logits():
    task = asked_task()
    (batch,) = task.evaluation_batches(5, 0, torch.float64)
    states = torch.randn(5, 6, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(16, 3, dtype=torch.float64, requires_grad=True)
    factored = task.loss(FactoredLogits(states, weight, None), batch.target)
    full = task.loss(states @ weight.T, batch.target)
    torch.testing.assert_close(factored, full, rtol=1e-12, atol=0)
    for a, b in zip(torch.autograd.grad(factored.sum(), [states, weight]),
                    torch.autograd.grad(full.sum(), [states, weight]), strict=True):  # fmt: skip
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_unasked_positions_have_no_gradient_even_where_logits_overflow():
    task = load_task("in-context-recall", length=8)
    (batch,) = task.evaluation_batches(3, 0, torch.float64)
    logits = torch.zeros(3, 7, 16, dtype=torch.float64)
    logits[batch.target == UNASKED] = torch.inf
    logits.requires_grad_(True)
    loss = task.loss(logits, batch.target)
    assert loss.tolist() == pytest.approx([math.log(16)] * 3)


def test_evaluation_in_parts_is_that_of_all_at_once(monkeypatch):
    from support import evaluation_context

    from iclbench.nn import tokens

    task = asked_task()
    (batch,) = task.evaluation_batches(9, 0, torch.float64)
    model = Transformer().build(task.signature, TransformerConfig(layers=1, width=8)).double()
    whole = task.metrics(model(batch.prompt).detach(), batch)
    monkeypatch.setattr(tokens, "AT_ONCE", 2 * 6 * 16)
    with torch.no_grad():
        parts = task.evaluate(model, batch, evaluation_context())
    for name, values in whole.items():
        torch.testing.assert_close(parts[name], values, rtol=1e-12, atol=1e-15)


def test_ties_share_the_answer_and_nan_is_wrong():
    logits = torch.tensor([[[2.0, 2.0, 1.0], [2.0, 2.0, 1.0], [math.nan, 0.0, 0.0]]])
    assert rightness(logits, torch.tensor([[0, 2, 1]])).tolist() == [[0.5, 0.0, 0.0]]


def test_repeated_positions_are_read_once_and_decoded():
    signature = Signature(Text, "token", 6, 0, 4, (5, 5, 5), vocabulary=4)
    assert signature.reads_one_state
    assert not Signature(Text, "token", 6, 0, 4, (5,), vocabulary=4).reads_one_state
    assert read_positions(signature) == slice(5, 6, 1)
    decoder = new_readout(signature, 8)
    assert isinstance(decoder, StateDecoder)
    # Independently: the layers in order, with the sinusoid of each rank.
    state = torch.randn(2, 1, 8)
    expected = []
    for rank in range(3):
        h = state[:, 0] + torch.tensor(
            [f(rank * 10 ** (-4 * i / 3)) for f in (math.sin, math.cos) for i in range(4)]
        )
        linears = [part for part in decoder.mlp if isinstance(part, nn.Linear)]
        for layer in linears:
            h = (h - h.mean(1, keepdim=True)) / (h.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
            h = h @ layer.weight.T + layer.bias
            if layer is not linears[-1]:
                h = 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
        expected.append(h)
    torch.testing.assert_close(decoder(state), torch.stack(expected, 1), rtol=1e-4, atol=1e-5)
    assert sinusoids(2, 3).shape == (2, 3)


def test_a_decoder_can_recover_every_id_of_a_short_text():
    """Compression of three ids of three: trained for a moment, all are recovered."""
    from iclbench.api.random import torch_generator

    task = load_task("compression", vocabulary=4, length=4)
    torch.manual_seed(0)
    model = Transformer().build(task.signature, TransformerConfig(layers=1, width=32, init_std=0.2))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    batches = task.training_batches(150, 64, [torch_generator("cpu", "t")], torch.float32)
    for i in range(150):
        loss = task.loss(model(Text(batches.prompt.ids[0, i])), batches.target[0, i]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    (batch,) = task.evaluation_batches(50, 0, torch.float32)
    scores = task.metrics(model(batch.prompt).detach().double(), Batch(batch.prompt, batch.target))
    assert float(scores["accuracy"].mean()) > 0.9
