"""Slurm's queue as `squeue` prints it, and the batches that were submitted."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from iclbench import RunError, UsageError
from iclbench.api.config import parse_config

pytest.importorskip("submitit")

from iclbench_slurm import environment, executor, squeue
from iclbench_slurm.batches import new_batch, read_batches
from iclbench_slurm.executor import Slurm, SlurmConfig

LINES = """\
12|0|iclbench-abc|RUNNING|None
12|1|iclbench-abc|PENDING|BeginTime
12|2|iclbench-abc|COMPLETING|None
13|N/A|iclbench-def|PENDING|(Priority|odd)
14|N/A|someone-else|RUNNING|None
"""


def test_jobs_are_named_by_their_batch_and_index(monkeypatch):
    asked = []
    monkeypatch.setattr(squeue, "command", lambda *words: asked.append(words) or LINES)
    in_queue = squeue.jobs_in_queue({"77777"})
    assert f"--user={','.join(sorted([str(os.getuid()), '77777']))}" in asked[0]
    assert in_queue == {
        "iclbench-abc_0": squeue.InQueue("12_0", "running", ""),
        "iclbench-abc_1": squeue.InQueue("12_1", "waiting", "BeginTime"),
        "iclbench-abc_2": squeue.InQueue("12_2", "running", ""),
        "iclbench-def_0": squeue.InQueue("13", "waiting", "(Priority|odd)"),
    }


def test_a_command_that_is_missing_or_fails_is_one_line(monkeypatch):
    with pytest.raises(RunError, match=r"^slurm: there is no no-such-squeue on this machine$"):
        squeue.command("no-such-squeue")

    def fail(*args, **options):
        raise subprocess.CalledProcessError(1, "squeue", stderr="a\nUnable to contact slurm\n")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(RunError, match=r"^slurm: squeue: Unable to contact slurm$"):
        squeue.command("squeue")


def test_batches_are_known_in_their_order_before_they_have_numbers(tmp_path):
    first = new_batch(tmp_path, [{"a": 1}, {"a": 2}])
    first.write(tmp_path)
    second = new_batch(tmp_path, [{"a": 3}])
    second.write(tmp_path)
    first.slurm_ids = ["7_0", "7_1"]
    first.write(tmp_path)
    assert read_batches(tmp_path) == [first, second]


def test_the_state_of_a_job_comes_from_the_queue_or_from_what_it_left(tmp_path, monkeypatch):
    batch = new_batch(tmp_path, [1, 2, 3, 4])
    batch.slurm_ids = [f"7_{index}" for index in range(4)]
    batch.write(tmp_path)
    for index, content in ((1, '{"result": [5]}'), (2, '{"error": "no luck"}')):
        path = batch.outcome(tmp_path, index)
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    log = tmp_path / "logs" / "7_3_0_log.err"
    log.parent.mkdir()
    log.write_text(
        "iclbench: step 3\nsrun: error: task 0: Killed\nsrun: Force Terminated Step\n"
        "srun: error: node7: task 0: Exited with exit code 143\n"
    )
    lines = f"7|0|{batch.name}|PENDING|Resources\n"
    monkeypatch.setattr(squeue, "command", lambda *words: lines)
    slurm = Slurm(SlurmConfig(), tmp_path)
    jobs = slurm.queue()
    assert [(job.state, job.reason, job.result) for job in jobs] == [
        ("waiting", "Resources", None),
        ("done", "", [5]),
        ("failed", "no luck", None),
        ("failed", "it left the queue without a result; its log ends: srun: error: task 0: Killed",
         None),
    ]  # fmt: skip
    assert [job.job for job in jobs] == [1, 2, 3, 4]
    assert jobs[3].log == str(log)
    # A job that has just left the queue may have written an outcome that can't be seen yet.
    lines = ""
    assert slurm.queue()[0].state == "running"
    assert Slurm(SlurmConfig(), tmp_path).queue()[0].state == "failed"


@pytest.mark.parametrize("hidden", ["none", "accounts,jobs"])
def test_jobs_of_another_user_are_neither_lost_nor_cancelled(tmp_path, monkeypatch, hidden):
    theirs = replace(new_batch(tmp_path, [1]), user="77777", slurm_ids=["7"])
    theirs.write(tmp_path)
    lines, cancelled = f"7|N/A|{theirs.name}|RUNNING|None\n", []

    def command(name, *words):
        if name == "scontrol":
            return f"PluginDir = /usr\nPrivateData             = {hidden}\n"
        if name == "scancel":
            cancelled.append(words)
        return "" if hidden != "none" else lines

    monkeypatch.setattr(os, "getuid", lambda: 1000)
    for module in (squeue, executor):
        monkeypatch.setattr(module, "command", command)
    squeue.shows_jobs_of_others.cache_clear()
    slurm = Slurm(SlurmConfig(), tmp_path)
    if hidden != "none":
        with pytest.raises(RunError, match=rf"user 77777 in {theirs.path(tmp_path)} may"):
            slurm.queue()
    else:
        assert [job.state for job in slurm.queue()] == ["running"]
        lines = ""
        assert [job.state for job in Slurm(SlurmConfig(), tmp_path).queue()] == ["failed"]
    slurm.cancel(theirs.ids)
    assert cancelled == []
    path = theirs.outcome(tmp_path, 0)
    path.parent.mkdir()
    path.write_text('{"result": [null]}')
    assert [job.state for job in Slurm(SlurmConfig(), tmp_path).queue()] == ["done"]
    squeue.shows_jobs_of_others.cache_clear()


def test_neither_commands_nor_jobs_inherit_another_job_s_variables(monkeypatch):
    """The driver may be a job itself; and a variable of sbatch would win over an argument."""
    ours = {"SLURM_CPU_BIND": "quiet", "SLURM_MEM_PER_NODE": "1", "SQUEUE_STATES": "R",
            "SBATCH_TIMELIMIT": "5", "SBATCH_JOB_NAME": "mine", "SBATCH_QOS": "long"}  # fmt: skip
    others = {"SLURM_CONF": "/etc/slurm.conf", "SBATCH_ACCOUNT": "physics", "PATH": "/bin"}
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in {**ours, **others, "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    seen = environment.environment_of_commands()
    assert not {"SLURM_CPU_BIND", "SLURM_MEM_PER_NODE", "SQUEUE_STATES"} & set(seen)
    parameters = {"time": 30, "additional_parameters": {"qos": "short"}}
    with environment.without_inherited(parameters):
        assert dict(os.environ) == {**others, "OMP_NUM_THREADS": "1"}
    with environment.without_inherited({**parameters, "cpus_per_task": 4}):
        assert dict(os.environ) == others
    assert dict(os.environ) == {**ours, **others, "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("job_name", "iclbench's own"),
        ("job-name", "job_name is iclbench's own"),
        ("partition", "an argument of the executor"),
    ],
)
def test_options_that_the_executor_needs_are_refused(name, reason):
    with pytest.raises(UsageError, match=reason):
        parse_config(SlurmConfig, {"additional_parameters": {name: "x"}}, "executor slurm")


def test_the_parameters_of_an_array_are_those_of_submitit(tmp_path):
    config = SlurmConfig(
        partition="gpu", gpus_per_node=1, timeout_min=30, mem_gb=1.5, setup=("module load cuda",)
    )
    assert Slurm(config, tmp_path)._parameters("name", 4, None) == {
        "partition": "gpu",
        "gpus_per_node": 1,
        "time": 30,
        "mem": "1536MB",
        "signal_delay_s": 90,
        "setup": ["module load cuda"],
        "additional_parameters": {"requeue": True},
        "job_name": "name",
        "array_parallelism": 4,
    }
    cores = Slurm(SlurmConfig(cpus_per_task=4), tmp_path)._parameters("name", 4, None)
    assert (cores["cpus_per_task"], cores["srun_args"]) == (4, ["--cpus-per-task=4"])
    chained = SlurmConfig(additional_parameters={"dependency": "afterok:3", "nice": 10})
    parameters = Slurm(chained, tmp_path)._parameters("name", 4, "17")
    wanted = {"requeue": True, "dependency": "afterany:17,afterok:3", "nice": 10}
    assert parameters["additional_parameters"] == wanted
