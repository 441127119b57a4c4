"""The files of Slurm's job arrays, which need no cluster."""

from __future__ import annotations

import pytest

pytest.importorskip("submitit")

from iclbench_slurm import batches, executor
from iclbench_slurm.batches import SUBMISSION_SECONDS, new_batch, read_batches
from iclbench_slurm.executor import Slurm


@pytest.fixture
def empty_queue(monkeypatch):
    monkeypatch.setattr(executor, "jobs_in_queue", dict)


def test_jobs_of_a_batch_that_another_process_is_submitting_wait(
    tmp_path, monkeypatch, empty_queue
):
    batch = new_batch(tmp_path, ["a", "b"])
    batch.write(tmp_path)
    waiting = Slurm(folder=tmp_path).queue()
    assert [(job.state, job.reason) for job in waiting] == [
        ("waiting", "it is being submitted")
    ] * 2
    late = batch.written + SUBMISSION_SECONDS + 1
    monkeypatch.setattr(batches.time, "time", lambda: late)
    assert [job.state for job in Slurm(folder=tmp_path).queue()] == ["failed"] * 2


def test_jobs_of_a_batch_that_was_refused_were_cancelled(tmp_path, empty_queue):
    batch = new_batch(tmp_path, ["a"])
    batch.cancelled = [0]
    batch.write(tmp_path)
    assert [job.state for job in Slurm(folder=tmp_path).queue()] == ["cancelled"]
    assert [one.written for one in read_batches(tmp_path)] == [batch.written]
