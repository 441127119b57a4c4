"""Killed runs and sweeps continue where they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import MODEL, TASK, TINY

from iclbench.training.checkpoints import Checkpoint


def kill_when(ready: Callable[[], bool], *arguments: object) -> None:
    """Run `iclbench ARGUMENTS` in another process and kill it once it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "iclbench", *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not ready() and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_a_killed_run_continues_to_the_same_bits(cli, tmp_path):
    """SIGKILL between two steps; the resumed run has the weights of an undisturbed one."""
    command = ("run", *MODEL, *TASK, *TINY, "--recipe-args", "steps=100,chunk=4")
    straight, cut = tmp_path / "straight", tmp_path / "cut"

    def checkpoints() -> list[Path]:
        return list(cut.glob("checkpoints/*.safetensors"))

    def weights(folder: Path) -> bytes:
        (path,) = folder.rglob("objects/*/*.safetensors")
        return path.read_bytes()

    kill_when(lambda: bool(checkpoints()), *command, "--checkpoint-seconds", 0, "--out", cut)
    assert not list(cut.rglob("*.json"))
    (checkpoint,) = checkpoints()
    assert 0 < Checkpoint.load(checkpoint).values["step"] < 100
    assert cli(*command, "--out", cut).code == 0
    assert not list(cut.glob("checkpoints/*"))
    assert cli(*command, "--out", straight).code == 0
    assert weights(cut) == weights(straight)


def test_a_killed_sweep_continues(cli, tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        f"""
        out = "{tmp_path / "results"}"
        [defaults]
        task = "least-squares"
        recipe = "smoke"
        seeds = 1
        eval_prompts = 32
        [[grid]]
        model = ["zero", "averaging"]
        [[grid]]
        model = "baseconv"
        recipe_args = {{ steps = 100000 }}
        """
    )
    kill_when(lambda: len(list(tmp_path.rglob("*.json"))) == 2, "sweep", file)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.json")}
    assert len(before) == 2
    file.write_text(file.read_text().replace("100000", "5"))
    continued = cli("sweep", file)
    assert continued.code == 0
    assert "3 runs: 2 skipped, 1 to run" in continued.out
    assert all(p.read_bytes() == content for p, content in before.items())
