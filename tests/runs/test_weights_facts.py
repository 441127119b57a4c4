"""What no training changes is as the model was built: a mask among the weights could be opened."""

from __future__ import annotations

import pytest
import torch
from forging import states_of, with_weights
from small_runs import TINY
from torch import nn

from iclbench import Architecture, Config, RecordStore, load_task, run, verify
from iclbench.runs.causality import reads_ahead
from iclbench.runs.weights_facts import are_alike

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


def test_models_of_other_shapes_are_not_alike():
    assert are_alike({"w": torch.ones(3)}, {"w": torch.ones(3)})
    assert not are_alike({"w": torch.ones(3)}, {"w": torch.ones(1, 3)})
    assert not are_alike({"w": torch.ones(3)}, {"v": torch.ones(3)})
