"""Sweeps of a campaign: what is left and what failed is counted in runs."""

from __future__ import annotations

import pytest
from test_campaign import SWEEP, campaign

from iclbench import RunError
from iclbench.runs.settings import Settings
from iclbench.sweeps import jobs
from iclbench.sweeps.campaign.cells import cells_of
from iclbench.sweeps.campaign.run import run_campaign

STAGE = {"name": "s", "summary": "sweep"}


@pytest.fixture
def content(tmp_path):
    """A sweep of five runs, three of which take weights of the first."""
    seeds = 'weights = "@first"\neval_seed = [1, 2, 3]'
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.replace('weights = "@first"', seeds))
    return campaign(tmp_path, {**STAGE, "sweep": [{"file": path, "out": "sweep", "hours": 1}]})


def test_runs_that_wait_for_weights_are_left(content, tmp_path):
    (cell,) = cells_of(content, Settings(tmp_path / "out"))
    assert (cell.work.runs, cell.seconds_left) == (5, 3600)


def test_runs_that_never_got_their_weights_have_failed(content, tmp_path, monkeypatch):
    def fail(*_):
        raise RunError("no luck")

    monkeypatch.setattr(jobs, "run_plans", fail)
    (failure,) = run_campaign(content, Settings(tmp_path / "out"))
    assert failure.endswith("5 runs failed; no luck")
