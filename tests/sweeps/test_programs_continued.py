"""Programs of a sweep that is continued: which cells train together again."""

from __future__ import annotations

import json
import signal

import pytest
import torch
from test_programs import DEFAULTS

from iclbench import sweep
from iclbench.api.errors import Interrupted
from iclbench.runs.settings import Settings
from iclbench.runs.training import checkpoint_of
from iclbench.sweeps import jobs
from iclbench.sweeps.jobs import job_of, run_job
from iclbench.sweeps.sweep import plan_sweep

RATES = [1e-3, 2e-3, 3e-3, 4e-3]
CONTENT = {
    "replicas": 2,
    "defaults": DEFAULTS,
    "grid": [{"model": "baseconv", "recipe_args": {"learning_rate": RATES}}],
}


def job_of_cells(cells, out):
    return job_of([json.loads(cell.request) for cell in cells], Settings(out))


def ids_of(groups):
    return [[cell.id for cell in group] for group in groups]


def test_a_cell_that_failed_does_not_part_a_group_that_has_a_checkpoint(tmp_path, monkeypatch):
    _, ((a, b), (c, d)) = plan_sweep(CONTENT, out=tmp_path)
    assert run_job(job_of_cells([b], tmp_path)) == [None]  # and `a`, of the same group, failed

    def cut(*args):
        raise Interrupted(signal.SIGTERM)

    _, groups = plan_sweep(CONTENT, out=tmp_path)
    assert ids_of(groups) == [[a.id, c.id], [d.id]]  # no training has begun: programs are filled
    with monkeypatch.context() as patch:
        patch.setattr("iclbench.runs.run.evaluate_and_record", cut)
        with pytest.raises(Interrupted):
            run_job(job_of_cells([c, d], tmp_path))
    assert len(list((tmp_path / "checkpoints").glob("*.safetensors"))) == 1
    _, groups = plan_sweep(CONTENT, out=tmp_path)
    assert ids_of(groups) == [[c.id, d.id], [a.id]]
    lines: list[str] = []
    result = sweep(CONTENT, out=tmp_path, report=lines.append)
    assert not result.failures
    assert not [line for line in lines if "can't be continued" in line]
    assert not list((tmp_path / "checkpoints").glob("*.safetensors"))


def test_the_checkpoint_of_half_a_program_is_continued(tmp_path, monkeypatch):
    """Where memory was short, a program was run in halves, and so it is again."""
    content = {**CONTENT, "replicas": 4}
    _, ((a, b, *_),) = plan_sweep(content, out=tmp_path)

    def cut(*args):
        raise Interrupted(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("iclbench.runs.run.evaluate_and_record", cut)
        with pytest.raises(Interrupted):
            run_job(job_of_cells([a, b], tmp_path))
    assert len(list((tmp_path / "checkpoints").glob("*.safetensors"))) == 1
    run_plans, continued = jobs.run_plans, []

    def short_of_memory(plans, settings):
        if len(plans) > 2:
            raise torch.OutOfMemoryError("out of memory")
        ids = [plan.spec.id for plan in plans]
        continued.append(checkpoint_of(ids, plans[0].train_key, settings.out).exists())
        run_plans(plans, settings)

    monkeypatch.setattr(jobs, "run_plans", short_of_memory)
    lines: list[str] = []
    assert not sweep(content, out=tmp_path, report=lines.append).failures
    assert continued == [True, False]
    assert not [line for line in lines if "can't be continued" in line]
    assert not list((tmp_path / "checkpoints").glob("*.safetensors"))
