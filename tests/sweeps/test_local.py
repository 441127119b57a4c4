"""The executor `local`: jobs that fail, workers that die, and workers whose parent does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from iclbench import RunError
from iclbench.sweeps.executors import local
from iclbench.sweeps.executors.local import Local


def die_or_answer(job):
    if job["die"]:
        os._exit(1)
    return "alive"


def test_a_worker_that_dies_fails_only_its_own_job(tmp_path):
    jobs = [{"die": True}, {"die": False}, {"die": False}]
    outcomes = dict(Local().map(die_or_answer, jobs, workers=2))
    assert isinstance(outcomes[0], RunError)
    assert str(outcomes[0]) == "its process ended with exit code 1"
    assert (outcomes[1], outcomes[2]) == ("alive", "alive")


def fail_or_answer(job):
    if job == 0:
        raise LookupError("no luck")
    return job


def leave_or_answer(job):
    if job == 0:
        sys.exit(3)
    return [os.getpid(), job]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_that_exits_ends_no_process(workers):
    outcomes = dict(Local().map(leave_or_answer, [0, 1, 2], workers))
    assert str(outcomes.pop(0)) == "SystemExit: 3"
    assert len({process for process, _ in outcomes.values()}) <= workers
    assert {job for _, job in outcomes.values()} == {1, 2}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_that_raises_fails_alone(workers):
    outcomes = dict(Local().map(fail_or_answer, [0, 1, 2], workers))
    assert str(outcomes.pop(0)) == "LookupError: no luck"
    assert outcomes == {1: 1, 2: 2}


def break_or_answer(job):
    if job == 0:
        local.gpu_is_usable = lambda: False
    return [os.getpid(), job]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_whose_gpu_is_lost_gets_no_further_job(workers, monkeypatch):
    """An error of a kernel may leave CUDA unusable until the process ends."""
    monkeypatch.setattr(local, "gpu_is_usable", local.gpu_is_usable)
    outcomes = dict(Local().map(break_or_answer, [0, 1, 2, 3], workers))
    assert [job for _, job in (outcomes[i] for i in range(4))] == [0, 1, 2, 3]
    broken, *others = (outcomes[i][0] for i in range(4))
    assert broken not in others


def gpu_of_this_process(job):
    return [os.getpid(), os.environ["CUDA_VISIBLE_DEVICES"]]


def test_each_worker_sees_one_gpu(monkeypatch):
    monkeypatch.setattr(local, "visible_gpus", lambda: ["0", "GPU-5e1f"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-5e1f")
    outcomes = [outcome for _, outcome in Local().map(gpu_of_this_process, [0, 1], workers=2)]
    assert len({process for process, _ in outcomes}) == 2
    assert {gpu for _, gpu in outcomes} == {"0", "GPU-5e1f"}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,GPU-5e1f"


@pytest.mark.parametrize(
    ("gpus", "used", "expected"),
    [
        (["0", "1"], [], "0"),
        (["0", "1"], ["0"], "1"),
        (["0", "1"], ["1"], "0"),  # that of a worker that has died
        (["0", "1"], ["0", "1", "0"], "1"),  # more workers than GPUs
        ([], [None], None),
    ],
)
def test_a_worker_gets_the_gpu_that_the_fewest_use(monkeypatch, gpus, used, expected):
    monkeypatch.setattr(local, "visible_gpus", lambda: gpus)
    team = local._Team(gpu_of_this_process, [], 4)
    team.members = [local._Worker(None, None, gpu) for gpu in used]
    assert team._free_gpu() == expected


def process_of(_):
    return os.getpid()


def collected(team):
    team.fill()
    while not (outcomes := team.collect()):
        pass
    return outcomes


@pytest.mark.parametrize(
    ("given", "gpus"),
    [("1, 0", ["1", "0"]), ("", []), ("GPU-a", ["GPU-a"]), ("-1", []), ("0,-1,1", ["0"])],
)
def test_visible_gpus_are_those_that_the_user_names(monkeypatch, given, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert local.visible_gpus() == gpus


def test_visible_gpus_are_all_of_the_machine_otherwise(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert local.visible_gpus() == ["0", "1"]


def gpus_of(_):
    return os.environ.get("CUDA_VISIBLE_DEVICES")


@pytest.mark.slow
def test_a_lone_worker_sees_all_gpus_so_that_a_number_means_the_same_there(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(local, "gpu_is_usable", lambda: False)
    assert list(local.Local().map(gpus_of, ["a", "b"], 1)) == [(0, "0,1"), (1, "0,1")]
    apart = [gpus for _, gpus in local.Local().map(gpus_of, ["a", "b"], 2)]
    assert sorted(apart) == ["0", "1"]


@pytest.mark.slow
def test_a_worker_that_died_idle_gets_no_job():
    team = local._Team(process_of, list(enumerate("ab")), 1)
    try:
        ((_, first),) = collected(team)
        os.kill(first, signal.SIGKILL)
        team.members[0].process.join()
        ((index, second),) = collected(team)
    finally:
        team.end()
    assert index == 1
    assert second != first


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time, os\n"
        "from iclbench.sweeps.executors.local import Local\n"
        "def job(folder):\n"
        "    open(f'{folder}/pid', 'w').write(str(os.getpid()))\n"
        "    time.sleep(300)\n"
        "if __name__ == '__main__':\n"
        f"    list(Local().map(job, [{str(tmp_path)!r}, {str(tmp_path)!r}], 2))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    # A busy machine may take long to start processes.
    deadline = time.monotonic() + 120
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    worker = int((tmp_path / "pid").read_text())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(worker)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
