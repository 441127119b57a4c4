"""The executor `slurm` on a real Slurm cluster, which tests/slurm_cluster.py starts."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cluster_sweep import (
    CELLS,
    KILLED,
    PREEMPTED,
    ClusterSweep,
    shown_on_failure,
    wait_until,
)

from iclbench import RunError, UsageError, check_executor

pytest.importorskip("submitit")

from iclbench_slurm.executor import Slurm, SlurmConfig
from iclbench_slurm.squeue import command, jobs_in_queue


def no_cluster() -> str | None:
    """Why there is no Slurm to test with, or None."""
    for program in ("sbatch", "srun", "squeue", "scancel", "scontrol"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    try:
        answer = command("sinfo", "--noheader", "--format", "%T")
    except RunError as error:
        return str(error)
    return None if re.search("idle|mix|alloc", answer) else f"its nodes are {answer.split()}"


@pytest.fixture(autouse=True)
def _needs_slurm() -> None:
    reason = no_cluster()
    if reason is not None:
        pytest.skip(f"no Slurm cluster to test with: {reason}")


def release_at_once() -> None:
    """A requeued job waits two minutes by default; let it start now."""
    for job in jobs_in_queue().values():
        if job.reason == "BeginTime":
            words = ["scontrol", "update", f"jobid={job.slurm_id}", "StartTime=now"]
            subprocess.run(words, capture_output=True, check=False)


@contextmanager
def cancelled_at_the_end(slurm: Slurm) -> Iterator[None]:
    """Leave no job in the queue, whatever happens."""
    try:
        yield
    finally:
        slurm.cancel([job.id for job in slurm.queue()])


@pytest.mark.slow
def test_twelve_cells_are_killed_preempted_and_continued_to_the_same_bits(tmp_path):
    cluster = ClusterSweep(tmp_path, "slurm", "poll_seconds=1,timeout_min=30,partition=low")
    slurm = Slurm(SlurmConfig(), cluster.out / "jobs" / "slurm")
    logs = cluster.out / "jobs" / "slurm" / "logs"

    def job_of(width):
        (job,) = (j for j in slurm.queue() if j.job["requests"][0]["model_args"]["width"] == width)
        return job

    shown = shown_on_failure((tmp_path, "*.log"), (logs, "*.err"), (logs, "*.out"))
    with shown, cancelled_at_the_end(slurm):
        driver = cluster.start(tmp_path / "first.log")
        killed = cluster.wait_until_held(KILLED)
        cluster.wait_until_held(PREEMPTED)
        driver.kill()
        driver.wait()
        asked = cluster.run("--status")
        held = rf"^running: .* width=({KILLED}|{PREEMPTED}) "
        assert len(re.findall(held, asked.stdout, re.M)) == 8, asked

        os.kill(killed, signal.SIGKILL)
        preempted = job_of(PREEMPTED)
        command("scancel", "--signal=USR2", jobs_in_queue()[preempted.id].slurm_id)
        wait_until(lambda: job_of(KILLED).state == "failed", "the killed job leaves the queue")
        asked = cluster.run("--status")
        assert asked.stdout.count("failed: iclbench run") == 4
        assert re.search("without a result; its log ends: srun: error: .*Killed", asked.stdout)
        assert f"log: {job_of(KILLED).log}" in asked.stdout

        cluster.release()
        driver = cluster.start(tmp_path / "second.log")
        wait_until(lambda: release_at_once() or driver.poll() is not None, "the second driver")
        output = (tmp_path / "second.log").read_text()
        assert driver.returncode == 0, output
        assert "4 to run" in output
        messages = [file.read_text() for file in logs.glob("*.err")]
        continued = [text for text in messages if re.search(r"continuing from step [1-9]", text)]
        assert len(continued) == 2
        assert any("saved at step" in text for text in continued)
        cluster.assert_twelve_records_of_the_same_bits(tmp_path / "local")
        # Nothing is left to submit.
        again = cluster.run(*cluster.executor, "--detach")
        assert f"{CELLS} runs: {CELLS} skipped, 0 to run" in again.stdout
        assert len(slurm.queue()) == 4


@pytest.mark.slow
def test_slurm_keeps_the_promises_of_executors(tmp_path):
    config = SlurmConfig(poll_seconds=0.5, timeout_min=10)
    with shown_on_failure((tmp_path, "jobs/logs/*")):
        check_executor(Slurm(config, tmp_path / "jobs"), folder=tmp_path)


@pytest.mark.slow
def test_jobs_that_were_cancelled_have_not_failed(tmp_path):
    slurm = Slurm(SlurmConfig(timeout_min=10, poll_seconds=0.5), tmp_path)
    ids = slurm.submit(time.sleep, [60, 60, 0], 3)
    with shown_on_failure((tmp_path, "logs/*")), cancelled_at_the_end(slurm):
        wait_until(lambda: "done" in [job.state for job in slurm.queue()], "the short job ends")
        slurm.cancel(ids)
        states = [job.state for job in Slurm(SlurmConfig(), tmp_path).queue()]
        assert states == ["cancelled", "cancelled", "done"]


@pytest.mark.slow
def test_what_slurm_refuses_is_one_line(tmp_path):
    with pytest.raises(RunError, match=r"^slurm: sbatch: .*Invalid partition.*$"):
        Slurm(SlurmConfig(partition="nonesuch"), tmp_path).submit(print, [{}], 1)
    wrong = SlurmConfig(additional_parameters={"no-such-option": 1})
    with pytest.raises((RunError, UsageError), match=r"^slurm: sbatch: .*no-such-option"):
        Slurm(wrong, tmp_path).submit(print, [{}], 1)
    assert {job.state for job in Slurm(SlurmConfig(), tmp_path).queue()} == {"cancelled"}


@pytest.mark.slow
def test_no_more_programs_run_at_once_than_there_are_workers_however_many_arrays(tmp_path):
    slurm = Slurm(SlurmConfig(timeout_min=10, poll_seconds=0.5, array_size=1), tmp_path)
    with shown_on_failure((tmp_path, "logs/*")), cancelled_at_the_end(slurm):
        programs = [f"date +%s.%N; sleep {2 + i / 10}; date +%s.%N" for i in range(3)]
        printed = [outcome for _, outcome in slurm.map(subprocess.getoutput, programs, 1)]
    times = sorted(tuple(map(float, lines.split())) for lines in printed)
    assert len(times) == 3
    assert all(end <= begun for (_, end), (begun, _) in itertools.pairwise(times))


@pytest.mark.slow
def test_arrays_before_one_that_is_interrupted_are_cancelled(tmp_path, monkeypatch):
    submit, calls = Slurm._submit, []

    def interrupted(self, batch, *args):
        calls.append(batch)
        if len(calls) == 2:
            raise KeyboardInterrupt
        submit(self, batch, *args)

    monkeypatch.setattr(Slurm, "_submit", interrupted)
    slurm = Slurm(SlurmConfig(timeout_min=10, poll_seconds=0.5, array_size=1), tmp_path)
    with shown_on_failure((tmp_path, "logs/*")), cancelled_at_the_end(slurm):
        with pytest.raises(KeyboardInterrupt):
            slurm.submit(time.sleep, [60, 60], 2)
        assert [job.state for job in slurm.queue()] == ["cancelled", "cancelled"]
        # Other tests have jobs in the same queue.
        assert {job.id for job in slurm.queue()}.isdisjoint(jobs_in_queue())
