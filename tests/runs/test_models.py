"""Initial models: independent of data, perturbed except for frozen parameters."""

from __future__ import annotations

import pytest
import torch
from small_runs import TINY, weights_of

from iclbench import (
    RunSpec,
    run,
)
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
