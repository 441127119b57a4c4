"""The sweeps of the published leaderboards: every cell can be planned, and no model is missing."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import pytest

from iclbench.api.architecture import Architecture
from iclbench.api.errors import UsageError
from iclbench.api.spec import RunSpec
from iclbench.plugins import host
from iclbench.runs.models import given_models
from iclbench.runs.plan import Plan, resolve
from iclbench.runs.store import RecordStore
from iclbench.sweeps.cells import Cells
from iclbench.sweeps.files import read_sweep_file, stages_of

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "leaderboards" / "sweeps").glob("*.toml"))


@functools.cache
def plans(path: Path, size: str) -> list[Plan]:
    """The plans of all cells; a cell that can't be resolved is an error."""
    file = read_sweep_file(path).sized(size)
    cells = Cells(file, RecordStore(file.out))
    for stage in stages_of(file):
        cells.resolve(stage)
    assert cells.failures == []
    assert len(cells.plans) == len(cells.cells)
    known = (cells.plans.get(cell.request) for cell in cells.in_order())
    return [plan for plan in known if plan is not None]


@pytest.mark.parametrize("size", ["quick", "paper"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_cell_can_be_planned(path, size):
    assert read_sweep_file(path).sized(size).out == "leaderboards/records"
    for plan in plans(path, size):
        spec = plan.spec
        assert spec.origin != "trained" or len(spec.seeds) >= 5


def test_every_model_runs_on_every_task_that_it_accepts():
    covered, args = set(), {}
    for path in FILES:
        for plan in plans(path, "quick"):
            spec = plan.spec
            covered.add((spec.task, spec.model, spec.weights or "", spec.dtype))
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
            if plan.spec.origin == "asked":  # it takes a language model, and minutes
                continue
            dtypes = ["float32"] if plan.spec.origin == "trained" else ["float32", "float64"]
            for dtype in dtypes:
                if (task, model, weights or "", dtype) not in covered:
                    assert dtype == "float64", (task, model, weights)
                    with pytest.raises(UsageError, match="can't run in float64"):
                        given_models(resolve(plan.request.model_copy(update={"dtype": dtype})))
