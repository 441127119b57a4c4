"""What an executor loses, or ran under another request, is not taken for done."""

from __future__ import annotations

import os
import signal

import pytest
from fake_queue import FakeQueue
from test_campaign import campaign, first, folder
from test_programs import DEFAULTS
from test_tuning import SPACE, plan_of

from iclbench import Executor, RunError, submit_sweep, sweep
from iclbench.api.executor import JobListener
from iclbench.runs.settings import Settings
from iclbench.sweeps.campaign.run import run_campaign
from iclbench.sweeps.jobs import run_job
from iclbench.sweeps.status import sweep_status
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings

__all__ = ["folder"]


class Losing(Executor):
    """Runs jobs in this process, but says of the first ones that their process died."""

    name = "losing"
    listener: JobListener | None = None
    calls: list[tuple[int, int]] = []
    deaths = 1

    def map(self, function, jobs, workers):
        self.calls.append((len(jobs), workers))
        for index, job in enumerate(jobs):
            if len(self.calls) <= self.deaths and index == 0:
                yield index, RunError("its process was killed by SIGKILL")
            else:
                yield index, function(job)


class Silent(Losing):
    """Gives no outcome."""

    name = "silent"

    def map(self, function, jobs, workers):
        yield from ()


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_a_program_of_trials_whose_process_died_gets_another_turn_alone(tmp_path, provide, deaths):
    executor = type("Losing", (Losing,), {"calls": [], "deaths": deaths})
    provide("executor", "losing", executor)
    search = SearchSettings(trials=12, space=SPACE, executor="losing", workers=3)
    lines: list[str] = []
    document = tune(plan_of(), Settings(tmp_path), search, lines.append)
    lost = [trial for trial in document.trials if trial.failure]
    assert ["SIGKILL" in trial.failure for trial in lost] == [True] * len(lost)
    assert bool(lost) == (deaths == 2)
    assert ("to run again: its process was killed by SIGKILL" in lines[0]) == (deaths > 0)
    # One program at a time, and only where one died; in another process, which may die as well.
    assert executor.calls[1:] == [(1, 3)] * (deaths > 0)


def run_or_die(job):
    """Dies as where memory is short, in a program of two layers."""
    if job["requests"][0]["model_args"]["layers"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_job(job)


@pytest.mark.slow
def test_a_program_of_trials_that_ends_every_process_ends_no_search(tmp_path, monkeypatch):
    monkeypatch.setattr("iclbench.sweeps.tuning.search.run_job", run_or_die)
    search = SearchSettings(trials=12, space=SPACE, workers=2)
    document = tune(plan_of(), Settings(tmp_path, device="cpu"), search)
    deaths = ["SIGKILL" in (trial.failure or "") for trial in document.trials]
    assert deaths == [trial.model_args["layers"] == 2 for trial in document.trials]
    assert {True, False} == set(deaths)


def test_a_cell_without_an_outcome_has_failed(folder, provide):
    provide("executor", "silent", Silent)
    content = campaign(folder, first(models=["zero"]))
    failures = run_campaign(content, Settings(folder / "out"), executor="silent")
    assert failures == ["a: zero on plain: the executor gave no result for it"]


def test_a_failure_is_not_forgotten_since_another_cell_has_the_same_name(folder):
    """Chance is a cell of its own, and is the model of the stage too."""
    stage = first(models=["zero"], model_args={"zero": {"misspelled": 1}})
    (failure,) = run_campaign(campaign(folder, stage), Settings(folder / "out"))
    assert failure.startswith("a: zero on plain: ")
    assert "misspelled" in failure


def test_a_record_of_a_job_that_was_submitted_without_a_shift_is_not_done(tmp_path):
    queue = FakeQueue(folder=tmp_path / "jobs" / "fake-queue")
    queue.held = True
    grid = {**DEFAULTS, "model": ["zero", "averaging"]}
    submit_sweep({"grid": [grid]}, executor=queue, out=tmp_path)
    # The first job ends when the queue is first asked, the second while it is followed.
    queue.held = False
    asked = {"grid": [{**grid, "shift": ["skewed"]}]}
    (failure,) = sweep(asked, executor=queue, out=tmp_path).failures
    assert failure.reason.startswith("its job was submitted without skewed; the same command")
    assert sweep(asked, executor=queue, out=tmp_path).failures == []


def test_the_status_of_a_folder_in_the_home_folder(tmp_path, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    grid = {"grid": [{**DEFAULTS, "model": "zero"}]}
    sweep(grid, out="~/results")
    assert [cell.state for cell in sweep_status(grid, out="~/results").cells] == ["done"]
