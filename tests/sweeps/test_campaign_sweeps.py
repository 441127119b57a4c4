"""Sweeps of a campaign: what is left and what failed is counted in runs."""

from __future__ import annotations

import shutil

import pytest
from test_campaign import SUITE, SWEEP, campaign

from iclbench import RecordStore, RunError
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


def damage(folder):
    path = next(path for path in RecordStore(folder).paths() if path.name.startswith("zero"))
    path.write_text(path.read_text().replace('"parameters"', '"parametres"'))


def test_a_damaged_record_is_a_failure_that_nothing_runs(content, tmp_path):
    out = tmp_path / "out"
    assert run_campaign(content, Settings(out)) == []
    damage(out / "sweeps" / "sweep")
    (cell,) = cells_of(content, Settings(out))
    assert (cell.state, cell.to_run, "it was edited" in cell.reason) == ("failed", False, True)


def test_a_damaged_record_of_a_board_is_a_failure_unless_another_is_published(tmp_path):
    (tmp_path / "tiny.toml").write_text(SUITE)
    stage = {**STAGE, "models": ["averaging"], "boards": ["plain"]}
    content, out = campaign(tmp_path, stage), tmp_path / "out"
    assert run_campaign(content, Settings(out)) == []
    shutil.copytree(out, tmp_path / "boards" / "records")
    damage(out)
    cells = cells_of(content, Settings(out))
    assert [(c.state, c.to_run) for c in cells] == [("failed", False), ("done", False)]
    (failure,) = run_campaign(content, Settings(out))
    assert failure.startswith("s: zero on plain: ")
    assert "it was edited" in failure
    published = content.model_copy(update={"published": tmp_path / "boards"})
    assert [cell.state for cell in cells_of(published, Settings(out))] == ["done", "done"]


def test_runs_that_never_got_their_weights_have_failed(content, tmp_path, monkeypatch):
    def fail(*_):
        raise RunError("no luck")

    monkeypatch.setattr(jobs, "run_plans", fail)
    (failure,) = run_campaign(content, Settings(tmp_path / "out"))
    assert failure.endswith("5 runs failed; no luck")
