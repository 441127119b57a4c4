"""Optimizers of torch: used by name, and continued to the same bits."""

from __future__ import annotations

import json

import pytest
import torch
from test_adam import RATES, gradients, three_replicas

from iclbench import Recipe, UsageError
from iclbench.training.optimizers import choice
from iclbench.training.optimizers.base import Update
from iclbench.training.optimizers.choice import make_optimizer, with_whole_optimizer
from iclbench.training.optimizers.torch_optimizer import (
    TorchOptimizer,
    _put_tensors,
    _take_tensors,
)


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
        ("SparseAdam", {}, "SparseAdam: .*dense"),
        ("pytorch_optimizer.ScheduleFreeAdamW", {}, "other weights than it trains"),
        ("pytorch_optimizer.SophiaH", {}, "pytorch_optimizer.SophiaH: "),
        ("pytorch_optimizer.Kron", {}, "draws random numbers of its own"),
    ],
)
def test_a_bad_optimizer_is_refused_before_the_run(name, arguments, message):
    if "." in name:
        pytest.importorskip(name.partition(".")[0])
    with pytest.raises(UsageError, match=message) as caught:
        with_whole_optimizer(recipe(name, arguments))
    assert "\n" not in str(caught.value)


def test_an_argument_for_gpus_alone_is_tried_without_it():
    """A recipe does not know its device; on a CPU, torch refuses a step that can be captured."""
    arguments = {"capturable": True}
    assert with_whole_optimizer(recipe("NAdam", arguments)).optimizer_args == arguments
    with pytest.raises(UsageError, match="capturable"):
        with_whole_optimizer(recipe("SGD", {**arguments, "maximize": False}))


@pytest.mark.parametrize(
    ("names", "own"),
    [
        (("adam", "Adam", "ADAM"), "adam"),
        (("RAdam", "radam", "torch.optim.RAdam", "torch.optim.radam.RAdam"), "RAdam"),
        (("SOAP",), "soap"),
        (("torch.optim.Adam",), "torch.optim.Adam"),  # which is not the harness's own
    ],
)
def test_an_optimizer_has_one_name(names, own):
    """Two names of one optimizer would be two runs."""
    wholes = {with_whole_optimizer(recipe(name, {})).optimizer for name in names}
    assert wholes == {own}


class Nested(torch.optim.SGD):
    """Keeps what packages keep: lists of tensors (SOAP), counters of a group (Prodigy), and more.

    Tensors of other dtypes than the parameter's, one under two names, and dictionaries.
    """

    def step(self, closure=None):
        for group in self.param_groups:
            group["k"] = group.get("k", 0) + 1
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["sums"] = [torch.zeros_like(p, dtype=torch.float32), None, 0]
                    state["count"] = torch.zeros((), dtype=torch.int64)
                    state["pair"] = (torch.zeros_like(p), {"mean": torch.zeros_like(p)})
                    state["same"] = state["pair"][0]
                assert state["count"].dtype == torch.int64
                assert state["same"] is state["pair"][0]
                state["sums"][0] += p.grad / 3
                state["sums"][2] += 1
                state["count"] += 1
                state["same"] += p.grad
                state["pair"][1]["mean"].lerp_(p.grad, 0.1)
                total = state["sums"][0] + state["pair"][0] + state["pair"][1]["mean"]
                p.data -= group["lr"] * total / (state["sums"][2] + state["count"] + group["k"])


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


def test_a_state_keeps_its_order_in_memory():
    """Products of the same numbers in another order end in other bits, which SOAP amplifies."""
    basis = torch.arange(12.0).view(4, 3).mT
    kept: dict[str, torch.Tensor] = {}
    tree = json.loads(json.dumps(_take_tensors([basis, basis.contiguous()], "0", kept, {})))
    written = {name: tensor.contiguous() for name, tensor in kept.items()}
    placed = _put_tensors(tree, written, {}, torch.device("cpu"))
    assert [tensor.stride() for tensor in placed] == [basis.stride(), (4, 1)]
    assert all(torch.equal(tensor, basis) for tensor in placed)


def test_a_state_goes_where_its_parameters_are():
    """A training that began on one GPU may continue on another; counters stay on the CPU."""
    kept: dict[str, torch.Tensor] = {}
    state = {"moment": torch.ones(2, device="meta"), "step": torch.ones(())}
    tree = _take_tensors(state, "0", kept, {})
    assert [part["device"] for _, part in tree["dict"]] == ["meta", "cpu"]
    written = {name: torch.ones(tensor.shape) for name, tensor in kept.items()}
    placed = _put_tensors(tree, written, {}, torch.device("meta", 0))
    assert [placed[name].device.type for name in state] == ["meta", "cpu"]


def test_a_class_that_needs_a_learning_rate_gets_that_of_each_step():
    class Plain(torch.optim.SGD):
        def __init__(self, params, lr):
            super().__init__(params, lr)

    replicas = three_replicas()
    before = replicas.flat.clone()
    optimizer = TorchOptimizer(replicas, "Plain", Plain, {})
    grad = torch.ones_like(replicas.flat)
    rates = torch.tensor([0.1, 0.2, 0.3], dtype=replicas.flat.dtype)
    optimizer.update(Update(grad, rates, torch.ones(3, dtype=torch.bool), 1))
    torch.testing.assert_close(replicas.flat, before - rates[:, None])
