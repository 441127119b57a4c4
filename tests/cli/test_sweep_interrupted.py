"""A sweep that is interrupted saves what runs, cancels the rest, and says how to go on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess

import pytest
from interrupting import Program

GRID = """
    replicas = 1
    [defaults]
    task = "least-squares"
    task_args = { dim = 2, examples = 4 }
    recipe = "smoke"
    recipe_args = { steps = 100000 }
    seeds = 1
    eval_prompts = 32
    [[grid]]
    model = "zero"
    [[grid]]
    model = "baseconv"
    model_args = { width = [4, 8, 12, 16, 20, 24] }
    """


@pytest.fixture
def words(tmp_path):
    """A sweep of one short and six long programs, in a folder with a space."""
    file = tmp_path / "a sweep.toml"
    file.write_text(GRID)
    return ["sweep", str(file), "--workers", "2", "--out", str(tmp_path / "out")]


def checkpoints(folder):
    return list((folder / "out" / "checkpoints").glob("*.safetensors"))


@pytest.mark.slow
@pytest.mark.parametrize("group", [False, True], ids=["parent", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_what_runs_and_cancels_the_rest(tmp_path, words, number, group):
    program = Program(tmp_path, *words)
    program.wait_until_training(processes=2)
    program.interrupt(number, group=group)
    code, errors = program.end()
    assert code == 128 + number
    lines = errors.splitlines()
    assert lines[-1] == (
        "iclbench: interrupted: 6 of 7 runs remain; to continue: "
        + shlex.join(["iclbench", *words])
    )
    assert sum("baseconv on least-squares saved at step" in line for line in lines) == 2
    assert len(lines) == 3
    assert len(checkpoints(tmp_path)) == 2
    assert len(list((tmp_path / "out").glob("*/*.json"))) == 1


@pytest.mark.slow
def test_an_interrupted_sweep_continues(tmp_path, words):
    for _ in range(2):
        program = Program(tmp_path, *words)
        program.wait_until_training(processes=2)
        program.interrupt(signal.SIGINT, group=True)
        code, errors = program.end()
        assert code == 130
    assert errors.count("continuing from step") == 2
    assert len(checkpoints(tmp_path)) == 2


@pytest.mark.slow
def test_a_second_signal_ends_at_once(tmp_path, words):
    """The first waits for workers that don't react."""
    program = Program(tmp_path, *words)
    program.wait_until_training(processes=2)
    for worker in program.training():
        os.kill(worker, signal.SIGSTOP)
    program.interrupt(signal.SIGINT, group=False)
    with pytest.raises(subprocess.TimeoutExpired):
        program.process.wait(timeout=3)
    program.interrupt(signal.SIGINT, group=False)
    assert program.process.wait(timeout=3) == -signal.SIGINT
    for worker in program.training():
        os.kill(worker, signal.SIGCONT)
    _, errors = program.end()
    assert "Traceback" not in errors
    assert "interrupted:" not in errors


@pytest.mark.slow
def test_one_worker_in_this_process_stops_too(tmp_path, words):
    words[words.index("2")] = "1"
    program = Program(tmp_path, *words)
    program.wait_until_training()
    program.interrupt(signal.SIGINT, group=False)
    code, errors = program.end()
    assert code == 130
    (line,) = errors.splitlines()
    assert "baseconv on least-squares saved at step" in line
    assert "; 6 of 7 runs remain; to continue: iclbench sweep " in line
    assert len(checkpoints(tmp_path)) == 1
