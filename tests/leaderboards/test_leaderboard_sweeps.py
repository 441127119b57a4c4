"""The sweeps of the published leaderboards: every cell can be run, and none is forgotten."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import pytest

from iclbench.api.architecture import Architecture
from iclbench.api.errors import UsageError
from iclbench.api.spec import RunSpec
from iclbench.plugins import host
from iclbench.runs.plan import Plan, resolve
from iclbench.runs.settings import Settings
from iclbench.sweeps.files import read_sweep_file, stages_of
from iclbench.sweeps.sweep import _Sweep

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "leaderboards" / "sweeps").glob("*.toml"))


@functools.cache
def plans(path: Path, size: str) -> list[Plan]:
    """Every cell, resolved; a cell that can't be is an error."""
    file = read_sweep_file(path).sized(size)
    going = _Sweep(file, Settings(), None, 1, lambda line: None)
    for stage in stages_of(file):
        going.resolve(stage)
    assert going.result.failures == []
    return list(going.plans.values())


@pytest.mark.parametrize("size", ["quick", "paper"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_cell_can_be_run(path, size):
    assert read_sweep_file(path).sized(size).out == "leaderboards/records"
    for plan in plans(path, size):
        spec = plan.spec
        assert spec.origin != "trained" or len(spec.seeds) >= 5


def test_every_model_is_there_in_every_task_that_it_accepts():
    there, args = set(), {}
    for path in FILES:
        for plan in plans(path, "quick"):
            spec = plan.spec
            there.add((spec.task, spec.model, spec.weights or "", spec.dtype))
            args.setdefault(spec.task, plan.request.task_args)
    assert len(args) >= 13
    for model in [entry.name for _, entry in host().entries("model")]:
        constructions = host().load("model", model, Architecture).constructions
        for task, weights in itertools.product(args, (None, *constructions)):
            try:
                plan = resolve(RunSpec(model=model, task=task, weights=weights,
                                       task_args=args[task]))  # fmt: skip
            except UsageError:
                continue
            dtypes = ["float32"] if plan.spec.origin == "trained" else ["float32", "float64"]
            for dtype in dtypes:
                assert (task, model, weights or "", dtype) in there
