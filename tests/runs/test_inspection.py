"""A model's predictions are looked at before it is trained."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn

from iclbench import Architecture, UsageError, load_task, run
from iclbench.runs.inspection import find_problem, predict_otherwise

TASK = load_task("least-squares", dim=2, examples=4)


class Model(nn.Module):
    """Predicts the query's first entry times a weight, changed by `fault`."""

    def __init__(self, fault):
        super().__init__()
        self.weight, self.fault = nn.Parameter(torch.ones(1)), fault

    def forward(self, prompt):
        prediction = prompt.query[:, :, :1] * self.weight
        return self.fault(prediction)


class Nothing(nn.Module):
    def forward(self, prompt):
        return None


FAULTS = {
    "shape": (lambda y: y[:, 0], r"it predicts \(6, 1\), not \(6, 1, 1\)"),
    "width": (lambda y: y.expand(-1, -1, 2), r"it predicts \(6, 1, 2\), not \(6, 1, 1\)"),
    "dtype": (lambda y: y.double(), "it predicts torch.float64 from prompts of torch.float32"),
    "finite": (lambda y: y.log() * y.sign().sqrt(), r"not finite on \d of 6 prompts"),
    "random": (lambda y: y + torch.randn(y.shape), "two evaluations of one prompt differ"),
    "batch": (lambda y: y - y.mean(dim=0), "depends on the other prompts of its batch"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_problem_is_named(fault):
    function, message = FAULTS[fault]
    problem = find_problem(Model(function), TASK)
    assert problem is not None
    assert re.search(message, problem)


def test_a_sound_model_has_no_problem():
    assert find_problem(Model(lambda y: y), TASK) is None


class Training(Model):
    """What a training forward pass does besides, which evaluation leaves out."""

    def __init__(self, kind):
        super().__init__(lambda y: y)
        self.kind, self.plain, self.draws = kind, torch.zeros(1), np.random.default_rng(0)
        self.register_buffer("kept", torch.zeros(1))
        self.norm = nn.BatchNorm1d(1)

    def forward(self, prompt):
        prediction = super().forward(prompt)
        if not self.training:
            return prediction
        if self.kind == "plain":
            self.plain = 0.9 * self.plain + prediction.mean() + 1
        if self.kind == "buffer":
            self.kept += 1
        if self.kind == "statistics":
            return self.norm(prediction)
        if self.kind == "dropout":
            return nn.functional.dropout(prediction, 0.5)
        drawn = self.draws.random() if self.kind == "numpy" else 0.0
        return prediction - self.plain - self.kept - drawn


@pytest.mark.parametrize("kind", ["plain", "numpy", "buffer", "statistics", "dropout"])
def test_what_training_changes_must_be_in_a_checkpoint(kind):
    model = Training(kind)
    problem = find_problem(model, TASK)
    assert (problem is not None) == (kind in {"plain", "numpy"})
    assert problem is None or "changes what is no parameter or buffer" in problem
    # Nothing of it is left in the model.
    assert model.plain == model.kept == 0
    assert model.norm.num_batches_tracked == 0


class PositiveDefinite(nn.Module):
    """Fails where random parameters make its matrix indefinite."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 2))

    def forward(self, prompt):
        matrix = torch.eye(2) + self.weight + self.weight.mT
        return prompt.query[:, :, :1] * torch.linalg.cholesky(matrix)[0, 0]


def test_a_model_that_fails_at_random_parameters_is_compared_at_its_own():
    module = PositiveDefinite()
    assert not predict_otherwise(module, copy.deepcopy(module), TASK)
    other = copy.deepcopy(module)
    other.weight.data[0, 0] = 1
    assert predict_otherwise(module, other, TASK)


class Hidden(Model):
    """Depends on its batch only once a parameter that begins with 0 has been trained."""

    def __init__(self):
        super().__init__(lambda y: y)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, prompt):
        y = super().forward(prompt)
        return y + self.gate * (y - y.mean(dim=0))


class InFloat32(Model):
    def forward(self, prompt):
        return super().forward(prompt) @ torch.ones(1, 1, dtype=torch.float32)


class HiddenBesideItsOwnTensors(Hidden):
    def forward(self, prompt):
        return super().forward(prompt) @ torch.ones(1, 1)


@pytest.mark.parametrize("kind", [Hidden, HiddenBesideItsOwnTensors])
def test_a_dependence_behind_a_parameter_that_begins_with_0_is_found(kind):
    assert (
        find_problem(kind(), TASK)
        == "a prompt's prediction depends on the other prompts of its batch"
    )


def test_a_model_that_cannot_compute_in_float64_is_tested_as_it_is():
    assert find_problem(InFloat32(lambda y: y), TASK) is None


class Stating(Model):
    def __init__(self, sizes):
        super().__init__(lambda y: y)
        self.sizes = sizes

    def state_sizes(self, length):
        return self.sizes


def test_state_sizes_are_whole_numbers():
    assert find_problem(Stating((3, 0)), TASK) is None
    for sizes in (("64",), [3], (1.5,), (-1,)):
        problem = find_problem(Stating(sizes), TASK)
        assert problem == f"state_sizes() returned {sizes!r}, not a tuple of whole numbers"


def test_what_is_not_a_tensor_is_named():
    assert find_problem(Nothing(), TASK) == "it predicts a NoneType, not a tensor"


@pytest.mark.parametrize("fault", ["finite", "batch"])
def test_a_solver_may_fail_on_single_prompts(fault):
    assert find_problem(Model(FAULTS[fault][0]), TASK, initial=False) is None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_with_a_problem_is_refused_before_training(tmp_path, provide, fault):
    function, message = FAULTS[fault]

    class Faulty(Architecture):
        name = "faulty"

        def supports(self, signature, config):
            return None

        def build(self, signature, config):
            return Model(function)

    provide("model", "faulty", Faulty)
    with pytest.raises(UsageError, match=f"faulty can't do least-squares: .*{message}"):
        run(model="faulty", task="least-squares", recipe="smoke", out=tmp_path)
    assert not list(tmp_path.rglob("*.json"))
