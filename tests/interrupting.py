"""Programs that a test interrupts once they train, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_distributions import write_plugin

#: An observer that leaves a file for every process that trains.
WITNESS = """
    import os
    from pathlib import Path

    @hookimpl
    def iclbench_training_step(spec, step, loss):
        Path(os.environ["WITNESS_FOLDER"], f"{os.getpid()}.training").touch()
"""

#: A busy machine may take long to start processes.
PATIENCE_SECONDS = 120.0


class Program:
    """`iclbench ARGUMENTS` in a process group of its own, as a shell starts it."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.folder = folder / "witness"
        if not self.folder.exists():
            self.folder.mkdir()
            write_plugin(self.folder, "witness", WITNESS)
        for file in self.folder.glob("*.training"):
            file.unlink()
        path = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "iclbench", *map(str, arguments)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "WITNESS_FOLDER": str(self.folder),
                 "PYTHONPATH": os.pathsep.join(path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )  # fmt: skip

    def wait_until_training(self, processes: int = 1) -> None:
        """Wait until that many processes train."""
        wait_until(lambda: len(self.training()) >= processes)

    def training(self) -> list[int]:
        """The processes that have trained."""
        return [int(file.stem) for file in self.folder.glob("*.training")]

    def interrupt(self, number: int, *, group: bool) -> None:
        """Send a signal to the first process, or to the whole group, as a terminal does."""
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """The exit code and standard error; nothing of the group may be left."""
        _, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        wait_until(lambda: not self.left())
        return self.process.returncode, errors

    def left(self) -> list[int]:
        """The processes of the group that still run."""
        if not Path("/proc/self/stat").exists():
            pytest.skip("needs /proc")
        processes = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, group = file.read_text().rpartition(")")[2].split()[:3]
            except OSError:  # it has ended
                continue
            if int(group) == self.process.pid and state != "Z":
                processes.append(int(file.parent.name))
        return processes


def wait_until(ready: Callable[[], bool]) -> None:
    """Wait until something holds; fails if that takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)
