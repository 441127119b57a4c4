"""Optimizers of torch and of packages: chosen by name, and resumed to the same bits."""

from __future__ import annotations

import json
import sys
import types

import pytest
import torch
from test_adam import RATES, gradients, three_replicas

from iclbench import Recipe, UsageError
from iclbench.training.optimizers import choice
from iclbench.training.optimizers.base import Update
from iclbench.training.optimizers.choice import check_optimizer, make_optimizer


def recipe(name, arguments) -> Recipe:
    return Recipe(steps=1, batch=1, optimizer=name, optimizer_args=arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("admaw", {}, "did you mean 'adamw'"),
        ("adam", {"beta": 1}, "unknown field 'beta'"),
        ("RAdam", {"nonsense": 1}, "nonsense"),
        ("torch.optim.LBFGS", {}, "needs a closure"),
        ("lbfgs", {"history": 0}, "history"),
    ],
)
def test_bad_optimizer_is_refused_before_the_run(name, arguments, message):
    with pytest.raises(UsageError, match=message):
        check_optimizer(recipe(name, arguments))


class Nested(torch.optim.SGD):
    """Keeps lists of tensors, as SOAP and Shampoo do."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state.setdefault("sums", [torch.zeros_like(p), None, 0])
                state["sums"][0] += p.grad
                state["sums"][2] += 1
                p.data -= group["lr"] * state["sums"][0] / state["sums"][2]


def test_optimizer_of_a_package_is_named_by_its_path():
    module = types.ModuleType("some_package")
    module.Nested, module.nothing = Nested, 1
    sys.modules["some_package"] = module
    try:
        assert check_optimizer(recipe("some_package.Nested", {"momentum": 0.0})) == {
            "momentum": 0.0
        }
        for name, message in (
            ("some_package.Missing", "no attribute 'Missing'"),
            ("some_package.nothing", "is no torch.optim.Optimizer"),
            ("no_such_package.Any", "No module named"),
        ):
            with pytest.raises(UsageError, match=message):
                check_optimizer(recipe(name, {}))
    finally:
        del sys.modules["some_package"]


def test_nested_state_continues_to_the_same_bits(monkeypatch):
    monkeypatch.setattr(choice, "_torch_class", lambda name: Nested)
    straight, first = three_replicas(), three_replicas()
    alive, rates = torch.ones(3, dtype=torch.bool), torch.tensor(RATES, dtype=torch.float64)
    ours = make_optimizer(straight, "Nested", {})
    cut = make_optimizer(first, "Nested", {})
    for step, grad in enumerate(gradients(4), start=1):
        ours.update(Update(grad, rates, alive, step))
        cut.update(Update(grad, rates, alive, step))
    tensors, values = cut.state()
    resumed = make_optimizer(first, "Nested", {})
    copied = {name: tensor.clone() for name, tensor in tensors.items()}
    resumed.load(copied, json.loads(json.dumps(values)))
    for step, grad in enumerate(gradients(8)[4:], start=5):
        ours.update(Update(grad, rates, alive, step))
        resumed.update(Update(grad, rates, alive, step))
    assert torch.equal(straight.flat, first.flat)
