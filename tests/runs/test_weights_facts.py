"""What no training changes is as the model was built: a mask among the weights could be opened."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from forging import reseal, states_of, with_weights
from small_runs import TINY
from torch import nn

from iclbench import Architecture, Config, RecordStore, load_task, run, verify
from iclbench.runs.causality import reads_ahead
from iclbench.runs.objects import Objects
from iclbench.runs.store import read_record
from iclbench.runs.weights_facts import Trained, are_copies, copied_seeds
from iclbench.training.checkpoints import weights_bytes

FACT = "tensors that training can't have changed"


class Masked(nn.Module):
    """Sums what its mask shows; the mask is a buffer that no state dict has."""

    def __init__(self, signature, config):
        super().__init__()
        self.table = nn.Linear(signature.input_width, 4)
        self.readout = nn.Linear(4, signature.output_width)
        self.positions = list(signature.readout)
        self.fixed = nn.Parameter(torch.randn(4), requires_grad=False)
        mask = torch.ones(signature.length, signature.length).tril()
        self.register_buffer("mask", mask, persistent=config.persistent)

    def forward(self, prompt):
        states = self.mask @ self.table(prompt.sequence()[0]) + self.fixed
        return self.readout(states[:, self.positions])


class MaskedConfig(Config):
    persistent: bool = False


class MaskedArchitecture(Architecture):
    name = "masked"
    Config = MaskedConfig

    def supports(self, signature, config):
        return None

    def build(self, signature, config):
        return Masked(signature, config)


@pytest.fixture
def trained(provide, tmp_path):
    provide("model", "masked", MaskedArchitecture)

    def train(**args):
        run(model="masked", **{**TINY, "task": "least-squares-prefixes", **args}, out=tmp_path)
        (path,) = RecordStore(tmp_path).paths()
        return path

    return train


def failing(path):
    return [check.name for check in verify(path) if not check.holds]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("mask", {}),
        ("mask", {"model_args": {"persistent": True}}),
        ("fixed", {}),
    ],
)
def test_what_training_leaves_alone_is_as_it_was_built(trained, name, args):
    path = trained(**args)
    assert failing(path) == []
    states = states_of(path)
    states[1] = {**states[1], name: states[1][name] + 0.5}
    assert failing(with_weights(path, states)) == [FACT]


class Normalized(Masked):
    """Keeps running statistics of what it sees in training; its buffers share memory."""

    def __init__(self, signature, config):
        super().__init__(signature, config)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("part", self.mask[:2])

    def forward(self, prompt):
        states = self.mask @ self.table(prompt.sequence()[0]) + self.fixed
        return self.readout(self.norm(states[:, self.positions].mT).mT)


def test_running_statistics_are_those_of_training(trained, monkeypatch):
    monkeypatch.setattr(
        MaskedArchitecture, "build", lambda self, signature, config: Normalized(signature, config)
    )
    path = trained(model_args={"persistent": True})
    assert failing(path) == []
    states = states_of(path)
    assert not torch.equal(states[0]["norm.running_mean"], torch.zeros(4))
    for name in ("mask", "fixed"):
        forged = {**states, 1: {**states[1], name: states[1][name] + 0.5}}
        assert failing(with_weights(path, forged)) == [FACT]


def test_causality_is_tested_with_the_parameters_that_a_model_has():
    """A buffer hides what random parameters are too small to show."""

    class Gated(Masked):
        def forward(self, prompt):
            states = self.table(prompt.sequence()[0])
            leak = states.roll(-1, dims=1) * (self.fixed.abs().sum() > 1000)
            return self.readout((states + leak)[:, self.positions])

    task = load_task("least-squares-prefixes", dim=2, examples=4)
    model = Gated(task.signature, MaskedConfig())
    assert reads_ahead(model, task) is None
    model.fixed.fill_(1e4)
    assert reads_ahead(model, task) is not None


def moved(weights, start=(1.0, 1.0, 1.0, 1.0)):
    as_tensor = partial(torch.tensor, dtype=torch.float64)
    return Trained(0, as_tensor(weights), None if start is None else as_tensor(start))


@pytest.mark.parametrize(
    ("other", "is_copy"),
    [
        ([2.0, 3.0, 4.0, 5.0], True),
        ([2.002, 3.003, 4.004, 5.005], True),  # all a little larger
        ([2.05, 3.0, 4.0, 5.0], True),  # one a little larger
        ([2.2, 3.3, 4.4, 5.5], False),
        ([2.0, 3.0, 4.0], False),
        ([math.inf, 3.0, 4.0, 5.0], False),
        ([math.nan, 3.0, 4.0, 5.0], False),
    ],
)
def test_weights_that_are_nearer_than_two_trainings_leave_them_are_copies(other, is_copy):
    start = [1.0] * len(other)
    assert are_copies(moved([2.0, 3.0, 4.0, 5.0]), moved(other, start)) is is_copy


def test_two_short_trainings_of_one_start_are_no_copies():
    """They lie near each other, and as far apart as they moved."""
    assert not are_copies(moved([1.01, 1.0, 1.0, 1.0]), moved([1.0, 1.01, 1.0, 1.0]))
    assert are_copies(moved([1.01, 1.0, 1.0, 1.0]), moved([1.0101, 1.0, 1.0, 1.0]))


def test_seeds_that_start_alike_are_compared_weight_by_weight():
    ends = [1.0] * 200
    first = moved(ends, None)
    assert copied_seeds([first, replace(moved([*ends[1:], 1.1], None), seed=1)]) == [1]
    assert copied_seeds([first, replace(moved([*ends[2:], 1.1, 1.1], None), seed=1)]) == []


@pytest.mark.parametrize("name", ["mask", "table.bias"])
@pytest.mark.parametrize("form", ["left out", torch.bool, torch.float64])
def test_no_tensor_is_left_out_or_has_another_dtype(trained, name, form):
    path = trained()
    states = states_of(path)
    changed = {**states[1]}
    tensor = changed.pop(name)
    if form != "left out":
        changed[name] = tensor.to(form)
    path = with_weights(path, {0: states[0], 1: changed})
    assert failing(path) == ["tensors in another form, or left out"]


def test_the_arguments_in_the_file_of_weights_are_the_record_s(trained):
    path = trained()
    spec, states = read_record(path).spec, states_of(path)
    data = weights_bytes(states, spec.model, {"persistent": True})
    weights = Objects.beside(path).write(data, "safetensors")
    path = reseal(path, lambda c: c.update(weights=weights.model_dump(mode="json")))
    assert failing(path) == ["arguments in the file of weights"]
