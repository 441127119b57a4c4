"""Every classifier against its formula, and logistic regression against its optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from iclbench import Categorical
from iclbench.api.architecture import Architecture
from iclbench.api.config import parse_config
from iclbench.plugins import host
from iclbench_categorical.quadrants import Quadrants

CLASSES = 4


def classify(name, prompt, **config):
    solver = host().load("model", name, Architecture)()
    config = parse_config(solver.Config, config, name)
    signature = Quadrants(Quadrants.Config(classes=CLASSES)).signature
    assert solver.supports(signature, config) is None
    return solver.build(signature, config)(prompt)


def prompt(n=12, queries=3, seed=0, classes=3):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, n, 2, generator=generator, dtype=torch.float64)
    y = torch.randint(classes, (2, n), generator=generator)
    query = torch.randn(2, queries, 2, generator=generator, dtype=torch.float64)
    return Categorical(x, y, query)


def mixed(probabilities, smoothing):
    return np.log((1 - smoothing) * np.asarray(probabilities) + smoothing / CLASSES)


def points(asked):
    for i in range(2):
        x, y = asked.x[i].numpy(), asked.y[i].numpy()
        for q, u in enumerate(asked.query[i].numpy()):
            yield (i, q), x, y, u


def one_hot(y):
    return np.eye(CLASSES)[y]


def test_class_frequency():
    asked = prompt()
    predicted = classify("class-frequency", asked, smoothing=0.2)
    for index, _, y, _ in points(asked):
        expected = mixed(one_hot(y).mean(axis=0), 0.2)
        np.testing.assert_allclose(predicted[index].numpy(), expected)


def test_nearest_class_mean():
    asked = prompt()
    predicted = classify("nearest-class-mean", asked, smoothing=0.01, temperature=0.7)
    for index, x, y, u in points(asked):
        scores = np.full(CLASSES, -np.inf)
        for c in set(y):
            scores[c] = -np.square(u - x[y == c].mean(axis=0)).sum() / 1.4
        p = np.exp(scores - scores.max())
        np.testing.assert_allclose(predicted[index].numpy(), mixed(p / p.sum(), 0.01))


@pytest.mark.parametrize("neighbours", [1, 3, 50])
def test_nearest_neighbour_vote(neighbours):
    asked = prompt()
    predicted = classify("nearest-neighbour-vote", asked, neighbours=neighbours, smoothing=0.3)
    for index, x, y, u in points(asked):
        nearest = np.argsort(np.square(x - u).sum(axis=1))[:neighbours]
        expected = mixed(one_hot(y[nearest]).mean(axis=0), 0.3)
        np.testing.assert_allclose(predicted[index].numpy(), expected)


def test_kernel_regression_is_nadaraya_watson():
    asked = prompt()
    predicted = classify("kernel-regression", asked, bandwidth=0.5, smoothing=0.3)
    for index, x, y, u in points(asked):
        weights = np.exp(-np.square(x - u).sum(axis=1) / 0.5)
        expected = mixed(weights @ one_hot(y) / weights.sum(), 0.3)
        np.testing.assert_allclose(predicted[index].numpy(), expected)


def test_logistic_regression_reaches_its_optimum():
    asked = prompt()
    predicted = classify("logistic-regression", asked, steps=3000, penalty=0.5, smoothing=1e-9)
    for i in range(2):
        x = np.concatenate([asked.x[i].numpy(), np.ones((12, 1))], axis=1)
        labels = one_hot(asked.y[i].numpy())[:, :3]

        def objective(flat, x=x, labels=labels):
            w = flat.reshape(3, 3)
            logits = x @ w
            logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            return -(labels * logs).sum() + 0.25 * np.square(w[:2]).sum()

        best = minimize(objective, np.zeros(9), tol=1e-14).x.reshape(3, 3)
        query = np.concatenate([asked.query[i].numpy(), np.ones((3, 1))], axis=1)
        logits = query @ best
        expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(predicted[i, :, :3].numpy(), expected, atol=1e-5)


def test_linear_probe_is_a_layer_trained_by_adam():
    asked = prompt()
    predicted = classify("linear-probe", asked, epochs=60, learning_rate=0.05, smoothing=1e-9)
    for i in range(2):
        layer = torch.nn.Linear(2, 3, dtype=torch.float64)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
        for _ in range(60):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layer(asked.x[i]), asked.y[i]).backward()
            optimizer.step()
        expected = layer(asked.query[i]).log_softmax(dim=1).detach()
        torch.testing.assert_close(predicted[i, :, :3], expected, atol=1e-6, rtol=0)


def test_class_absent_from_the_context_keeps_its_probability():
    asked = prompt(classes=2)
    for name in ("class-frequency", "nearest-class-mean", "nearest-neighbour-vote",
                 "kernel-regression", "logistic-regression", "linear-probe"):  # fmt: skip
        predicted = classify(name, asked, smoothing=0.4)
        assert torch.allclose(predicted.exp().sum(dim=2), torch.ones(2, 3).double())
        assert float(predicted[..., 3].max()) == pytest.approx(math.log(0.1))


def median_distance(x):
    pairs = [np.linalg.norm(x[i] - x[j]) for i in range(len(x)) for j in range(i)]
    return np.sort(pairs)[(len(pairs) - 1) // 2]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("kernel-regression", lambda x: {"bandwidth": 0.4 * median_distance(x)}),
        ("nearest-class-mean", lambda x: {"temperature": median_distance(x) ** 2 / 8}),
        ("logistic-regression", lambda x: {"penalty": np.square(x).sum(axis=1).mean() / 2}),
        ("nearest-neighbour-vote", lambda x: {"neighbours": 4}),  # √12, rounded up
    ],
)
def test_defaults_follow_the_context(name, setting):
    asked = prompt()
    predicted = classify(name, asked, smoothing=0.1)
    for i in range(2):
        one = Categorical(*(field[i : i + 1] for field in asked))
        expected = classify(name, one, smoothing=0.1, **setting(one.x[0].numpy()))
        torch.testing.assert_close(predicted[i : i + 1], expected)


def test_the_default_smoothing_adds_half_an_example_of_each_class():
    asked = prompt()
    for index, _, y, _ in points(asked):
        counts = one_hot(y).sum(axis=0)
        expected = np.log((counts + 0.5) / (len(y) + 0.5 * CLASSES))
        np.testing.assert_allclose(classify("class-frequency", asked)[index], expected)
    votes = classify("nearest-neighbour-vote", asked, neighbours=1).exp()
    # One vote and half an example of each of four classes.
    np.testing.assert_allclose(votes.amax(dim=2).numpy(), 1.5 / 3)


def test_a_single_example_and_equal_examples_are_finite():
    for n in (1, 3):
        asked = prompt(n=n)._replace(x=torch.ones(2, n, 2, dtype=torch.float64))
        for name in ("kernel-regression", "nearest-class-mean", "nearest-neighbour-vote",
                     "logistic-regression"):  # fmt: skip
            assert classify(name, asked).isfinite().all()
