"""A run that is interrupted saves a checkpoint, says so, and continues."""

from __future__ import annotations

import re
import signal

import pytest
from interrupting import Program
from tiny import MODEL, TASK, TINY

from iclbench.training.checkpoints import Checkpoint

LONG = ("run", *MODEL, *TASK, *TINY, "--recipe-args", "steps=100000")


def test_ctrl_c_saves_a_checkpoint_and_says_so(tmp_path):
    program = Program(tmp_path, *LONG, "--out", tmp_path / "out")
    program.wait_until_training()
    program.interrupt(signal.SIGINT, group=True)
    code, errors = program.end()
    assert code == 130
    (path,) = (tmp_path / "out" / "checkpoints").glob("*")
    step = Checkpoint.load(path).values["step"]
    assert errors.splitlines()[-1] == (
        f"iclbench: interrupted: transformer on least-squares saved at step {step} of 100000; "
        "the same command continues"
    )
    assert "Traceback" not in errors


def test_the_same_command_beside_it_is_refused_at_once(cli, tmp_path):
    program = Program(tmp_path, *LONG, "--out", tmp_path / "out")
    program.wait_until_training()
    again = cli(*LONG, "--out", tmp_path / "out")
    assert again.code == 2
    assert "another process is training this run" in again.err
    program.interrupt(signal.SIGINT, group=True)
    code, errors = program.end()
    assert code == 130
    assert "the same command continues" in errors


@pytest.mark.slow
def test_a_terminated_run_continues_and_the_others_are_counted(tmp_path):
    arguments = [*LONG, "--model", "transformer,zero", "--out", tmp_path / "out"]
    program = Program(tmp_path, *arguments)
    program.wait_until_training()
    program.interrupt(signal.SIGTERM, group=False)
    code, errors = program.end()
    assert code == 143
    assert "; 1 more not started; the same command continues\n" in errors
    saved = re.search(r"saved at step (\d+)", errors)[1]
    again = Program(tmp_path, *arguments)
    again.wait_until_training()
    again.interrupt(signal.SIGINT, group=False)
    code, errors = again.end()
    assert code == 130
    assert f"continuing from step {saved} of " in errors


@pytest.mark.slow
def test_an_interrupted_run_has_the_weights_of_an_undisturbed_one(cli, tmp_path):
    short = [*LONG[:-1], "steps=2000,chunk=5"]
    program = Program(tmp_path, *short, "--out", tmp_path / "cut")
    program.wait_until_training()
    program.interrupt(signal.SIGINT, group=True)
    assert program.end()[0] == 130
    assert cli(*short, "--out", tmp_path / "cut").code == 0
    assert not list((tmp_path / "cut" / "checkpoints").glob("*"))
    assert cli(*short, "--out", tmp_path / "straight").code == 0
    one, other = (next((tmp_path / name).rglob("*.safetensors")) for name in ("cut", "straight"))
    assert one.read_bytes() == other.read_bytes()


def interrupted(cli, monkeypatch, *args):
    """The last line of a command that a signal ends as soon as it evaluates a model."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with monkeypatch.context() as patch:
            patch.setattr(
                "iclbench.runs.run.measure", lambda *a, **k: signal.raise_signal(signal.SIGTERM)
            )
            outcome = cli(*args)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert outcome.code == 143
    return outcome.err.splitlines()[-1]


def test_runs_that_have_records_already_are_counted(cli, tmp_path, monkeypatch):
    tail = (*TASK, *TINY, "--out", tmp_path)
    assert cli("run", "--model", "ridge", *tail).code == 0
    last = interrupted(cli, monkeypatch, "run", "--model", "zero,ridge,averaging", *tail)
    assert "1 of 3 runs have records; 1 more not started; the same" in last
    last = interrupted(cli, monkeypatch, "run", "--model", "zero,ridge", "--force", *tail)
    assert "0 of 2 runs have records; 1 more not started; the same" in last


@pytest.mark.parametrize(
    ("flag", "how"),
    [
        ("--force", "the same command continues, and with --force repeats what is done"),
        ("--no-resume", "the same command without --no-resume continues"),
        ("--resume", "the same command continues"),
    ],
)
def test_the_message_is_about_the_very_command(cli, tmp_path, monkeypatch, flag, how):
    args = ("run", "--model", "zero,ridge", *TASK, *TINY, flag, "--out", tmp_path)
    last = interrupted(cli, monkeypatch, *args)
    assert last == f"iclbench: interrupted: 0 of 2 runs have records; 1 more not started; {how}"
    assert not list(tmp_path.rglob("*.json"))
