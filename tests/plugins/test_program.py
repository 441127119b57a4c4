"""What a Slurm job runs: outcomes, and signals that come before its end."""

from __future__ import annotations

import json
import signal

import pytest
from support import run_python

pytest.importorskip("submitit")

from iclbench_slurm.program import Program


@pytest.fixture(autouse=True)
def _handlers_of_this_process():
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def outcome_of(function, job, path):
    Program(function, json.dumps(job), str(path))()
    return json.loads(path.read_text())


def test_the_outcome_of_a_job_is_its_result_or_its_error(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert outcome_of("builtins:len", [1, 2], tmp_path / "a") == {"result": 2}
    outcome = outcome_of("builtins:len", 3, tmp_path / "b")
    assert outcome == {"error": "TypeError: object of type 'int' has no len()"}
    assert outcome_of("sys:exit", 3, tmp_path / "c") == {"error": "SystemExit: 3"}


SCRIPT = """
import os, signal, sys, time
from iclbench_slurm.program import Program

def work(number):
    os.kill(os.getpid(), getattr(signal, number))
    os.kill(os.getpid(), getattr(signal, number))
    while True:
        time.sleep(0.05)

def requeue(number, frame):
    print("requeued", flush=True)
    sys.exit(7)

def lack(number, frame):
    raise FileNotFoundError("scontrol")  # as in a container without Slurm's commands

def refuse(number, frame):
    import subprocess
    raise subprocess.CalledProcessError(1, "scontrol requeue")

signal.signal(signal.SIGUSR2, globals()[sys.argv[2]])
signal.signal(signal.SIGTERM, lambda *_: None)  # as submitit does
Program("__main__:work", '"' + sys.argv[1] + '"', sys.argv[3])()
"""


@pytest.mark.parametrize(
    ("number", "handler", "code", "out"),
    [
        ("SIGUSR2", "requeue", 7, "requeued\n"),
        ("SIGUSR2", "refuse", 0, ""),
        ("SIGUSR2", "lack", 0, ""),
        ("SIGTERM", "requeue", 143, ""),
    ],
)
def test_a_warning_requeues_a_job_and_a_cancellation_ends_it(tmp_path, number, handler, code, out):
    script, outcome = tmp_path / "script.py", tmp_path / "outcome"
    script.write_text(SCRIPT)
    done = run_python(str(script), number, handler, str(outcome), path=tmp_path)
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    if handler in {"refuse", "lack"}:
        assert "not requeued; the same command continues it" in outcome.read_text()
    else:
        assert not outcome.exists()
