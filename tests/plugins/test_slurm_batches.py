"""The files of Slurm's job arrays, which need no cluster."""

from __future__ import annotations

import pytest

pytest.importorskip("submitit")

from iclbench import RunError
from iclbench_slurm import batches, executor
from iclbench_slurm.batches import SUBMISSION_SECONDS, new_batch, read_batches
from iclbench_slurm.executor import Slurm, SlurmConfig


@pytest.fixture
def empty_queue(monkeypatch):
    monkeypatch.setattr(executor, "jobs_in_queue", lambda users=(): {})


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


def test_without_a_cluster_nothing_is_left_that_a_later_question_would_need_one_for(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="there is no squeue on this machine"):
        Slurm(folder=tmp_path / "jobs").submit(print, ["a"], 1)
    assert read_batches(tmp_path / "jobs") == []
    assert Slurm(folder=tmp_path / "jobs").queue() == []


def test_jobs_of_a_batch_that_was_refused_were_cancelled(tmp_path, empty_queue):
    batch = new_batch(tmp_path, ["a"])
    batch.cancelled = [0]
    batch.write(tmp_path)
    assert [job.state for job in Slurm(folder=tmp_path).queue()] == ["cancelled"]
    assert [one.written for one in read_batches(tmp_path)] == [batch.written]


@pytest.mark.parametrize("error", [OSError(116, "Stale file handle"), FileNotFoundError("gone")])
def test_a_file_that_cannot_be_read_for_a_moment_ends_no_sweep(
    tmp_path, monkeypatch, empty_queue, error
):
    batch = new_batch(tmp_path, ["a"])
    batch.write(tmp_path)
    batch.outcome(tmp_path, 0).parent.mkdir()
    batch.outcome(tmp_path, 0).write_text('{"result": 5}')
    slurm, problems = Slurm(folder=tmp_path), [error] * 2
    slurm.poll_seconds = 0.0

    def read(folder):
        if problems:
            raise problems.pop()
        return read_batches(folder)

    monkeypatch.setattr(executor, "read_batches", read)
    assert [job.result for job in slurm.follow([batch.job_id(0)])] == [5]
    assert not problems


def test_the_outcome_of_a_job_is_read_once(tmp_path, empty_queue):
    batch = new_batch(tmp_path, ["a"])
    batch.write(tmp_path)
    batch.outcome(tmp_path, 0).parent.mkdir()
    batch.outcome(tmp_path, 0).write_text('{"result": 5}')
    slurm = Slurm(folder=tmp_path)
    assert [job.result for job in slurm.queue()] == [5]
    batch.outcome(tmp_path, 0).unlink()
    assert [(job.state, job.result) for job in slurm.queue()] == [("done", 5)]


def test_arrays_before_a_refused_one_go_on(tmp_path, monkeypatch, empty_queue):
    """A site limits how many jobs a user may have; cancelling would lose what has begun."""
    refusal = RunError("slurm: sbatch: Job violates accounting/QOS policy")
    accepted = []

    def submit(self, batch, *_):
        if accepted:
            raise refusal
        batch.slurm_ids = ["17_0", "17_1"]
        accepted.append(batch.name)

    monkeypatch.setattr(Slurm, "_submit", submit)
    slurm = Slurm(SlurmConfig(array_size=2), tmp_path)
    ids = slurm.submit(print, list("abcde"), 2)
    assert len(accepted) == 1
    jobs = {job.id: job for job in slurm.queue()}
    assert [jobs[i].state for i in ids] == ["running"] * 2 + ["failed"] * 3
    assert [jobs[i].job for i in ids] == list("abcde")
    assert {jobs[i].reason for i in ids[2:]} == {f"{refusal}; the same command submits it again"}
    # Another process knows too, and nothing is left of an array that was refused first.
    assert [job.state for job in Slurm(folder=tmp_path).queue()][2:] == ["failed"] * 3
    with pytest.raises(RunError, match="QOS policy"):
        slurm.submit(print, ["f"], 2)


def test_a_half_written_file_of_a_batch_is_a_queue_without_an_answer(tmp_path, empty_queue):
    new_batch(tmp_path, ["a"]).write(tmp_path)
    (path,) = (tmp_path / "batches").iterdir()
    path.write_text("{")
    with pytest.raises(RunError, match=r"^slurm: JSONDecodeError: "):
        Slurm(folder=tmp_path).queue()


def test_cancelling_is_tried_again_and_then_given_up(tmp_path, monkeypatch):
    batch = new_batch(tmp_path, ["a"])
    batch.write(tmp_path)
    monkeypatch.setattr(executor, "CANCEL_SECONDS", 0.0)
    problems = [RunError("slurm: squeue: Unable to contact slurm"), OSError(5, "I/O error")]

    def ask():
        if problems:
            raise problems.pop()
        return {}

    monkeypatch.setattr(executor, "jobs_in_queue", ask)
    Slurm(folder=tmp_path).cancel([batch.job_id(0)])
    assert read_batches(tmp_path)[0].cancelled == [0]
    problems += [RunError("slurm: squeue: Unable to contact slurm")] * 9
    with pytest.raises(RunError, match="Unable to contact slurm"):
        Slurm(folder=tmp_path).cancel([batch.job_id(0)])
    assert len(problems) == 9 - executor.CANCEL_TRIES
    Slurm(folder=tmp_path).cancel([])
    assert len(problems) == 9 - executor.CANCEL_TRIES
