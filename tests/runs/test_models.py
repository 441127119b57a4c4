"""Initial models: independent of data, perturbed except for frozen parameters."""

from __future__ import annotations

import pytest
import torch
from small_runs import TINY, weights_of
from torch import nn

from iclbench import Architecture, Config, RunSpec, Solver, UsageError, load_task, run, verify
from iclbench.runs.checks import ConformanceError, check_architecture
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.training.checkpoints import load_weights


def test_frozen_parameters_stay_and_perturbed_ones_move(tmp_path, fake):
    spec = {**TINY, "init": "partial", "freeze": ["readout.*"], "recipe_args": {"steps": 3}}
    record = run(model="fake", **spec, out=tmp_path)
    weights = weights_of(tmp_path, record)
    for state in load_weights(weights).states.values():
        assert (state["readout.weight"] == 0).all()
    perturbed = resolve(RunSpec(model="fake", **{**spec, "perturb": 0.1}))
    plain = resolve(RunSpec(model="fake", **spec))
    for seed in (0, 1):
        moved, still = initial_module(perturbed, seed), initial_module(plain, seed)
        assert torch.equal(moved.readout.weight, still.readout.weight)
        change = moved.positions - still.positions
        assert change.std().item() == pytest.approx(0.1, rel=0.5)


class RandomFeatures(nn.Module):
    """Features at random, which are no buffer unless `kept`."""

    def __init__(self, kept):
        super().__init__()
        features = torch.randn(5, 8)
        if kept:
            self.register_buffer("features", features, persistent=kept == "always")
        else:
            self.features = features
        self.readout = nn.Linear(8, 1)

    def forward(self, prompt):
        examples = torch.cat([prompt.x, prompt.y], dim=2).mean(dim=1)
        inputs = torch.cat([examples, prompt.query[:, 0]], dim=1)
        return self.readout((inputs @ self.features).cos())[:, None]


class Randomized(Architecture):
    name = "randomized"
    kept = ""
    begins_with_zero = False

    def supports(self, signature, config):
        return None

    def build(self, signature, config):
        module = RandomFeatures(self.kept)
        if self.begins_with_zero:
            nn.init.zeros_(module.readout.weight)
        return module


@pytest.mark.parametrize("zero", [False, True])
def test_random_numbers_outside_the_state_are_refused(tmp_path, provide, monkeypatch, zero):
    """All seeds would train with those of the first, and be evaluated with others."""
    monkeypatch.setattr(Randomized, "begins_with_zero", zero)
    provide("model", "randomized", Randomized)
    with pytest.raises(UsageError, match="keeps numbers outside its parameters and buffers"):
        run(model="randomized", **TINY, out=tmp_path)
    with pytest.raises(ConformanceError, match="outside its parameters"):
        check_architecture(Randomized(), load_task("least-squares", dim=2, examples=4), Config())


class Masking(RandomFeatures):
    """Registers a buffer in its forward pass."""

    def forward(self, prompt):
        if not hasattr(self, "mask"):
            self.register_buffer("mask", torch.ones(1), persistent=False)
        return self.mask * super().forward(prompt)


def test_a_buffer_of_the_forward_pass_is_no_obstacle(tmp_path, provide):
    class Masked(Randomized):
        name = "masked"

        def build(self, signature, config):
            return Masking("always")

    provide("model", "masked", Masked)
    assert run(model="masked", **TINY, out=tmp_path).metrics["squared_error"].mean > 0


@pytest.mark.parametrize("kept", ["always", "in memory"])
def test_random_buffers_are_the_same_under_shift(tmp_path, provide, kept):
    class Buffered(Randomized):
        name = "buffered"

    Buffered.kept = kept
    provide("model", "buffered", Buffered)
    records = [
        run(model="buffered", **TINY, out=tmp_path / str(i), shift="inputs-half") for i in range(2)
    ]
    means = [record.evaluations["inputs-half"].metrics["squared_error"].mean for record in records]
    assert means[0] == means[1]


def test_initialization_does_not_depend_on_data_or_on_torch_s_generator():
    plans = [
        resolve(RunSpec(model="baseconv", **{**TINY, "recipe_args": {"batch": b}})) for b in (4, 8)
    ]
    torch.manual_seed(1)
    first = initial_module(plans[0], 0)
    torch.manual_seed(2)
    second = initial_module(plans[1], 0)
    assert torch.equal(first.positions, second.positions)
    assert not torch.equal(first.positions, initial_module(plans[0], 1).positions)


class Guess(nn.Module):
    """Answers by numbers that it draws when it is built, or at every prompt."""

    def __init__(self, when):
        super().__init__()
        self.built = torch.randn(()) if when == "build" else None

    def forward(self, prompt):
        like = prompt.y[:, :1]
        return torch.randn_like(like) if self.built is None else self.built.expand_as(like)


@pytest.mark.parametrize("when", ["build", "forward"])
def test_a_solver_that_draws_has_one_result_and_leaves_torch_s_generator(tmp_path, provide, when):
    class Guessing(Solver):
        name = "guessing"

        def supports(self, signature, config):
            return None

        def build(self, signature, config):
            return Guess(when)

    provide("model", "guessing", Guessing)
    means = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = torch.get_rng_state()
        record = run(model="guessing", **TINY, out=tmp_path / str(seed), shift="inputs-half")
        assert all(check.holds for check in verify(record.path))
        assert torch.equal(torch.get_rng_state(), expected)
        means.append([e.metrics["squared_error"].mean for e in record.evaluations.values()])
    assert means[0] == means[1]
