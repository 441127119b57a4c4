"""A sweep of twelve cells that a test disturbs on a cluster, and what must come of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fake_distributions import write_plugin

from iclbench import Record, RecordStore, sweep
from iclbench.runs.store import read_record

#: Three programs of four cells, named by their width.
KILLED, PREEMPTED, UNDISTURBED = 4, 8, 12
SWEEP = f"""
replicas = 4
[defaults]
task = "least-squares"
task_args = {{ dim = 2, examples = 4 }}
recipe = "smoke"
seeds = 1
eval_prompts = 32
[[grid]]
model = "baseconv"
model_args = {{ width = [{KILLED}, {PREEMPTED}, {UNDISTURBED}] }}
recipe_args = {{ steps = 60, chunk = 2, learning_rate = [1e-3, 2e-3, 3e-3, 4e-3] }}
"""
CELLS = 12

#: An observer that holds two programs after their first checkpoint, until they get a signal or
#: there is a file `release`.
WITNESS = f"""
    import os, time
    from pathlib import Path

    from iclbench.training.interruption import _process

    folder = Path(os.environ["WITNESS_FOLDER"])
    steps = set()

    @hookimpl
    def iclbench_training_step(spec, step):
        width = spec.model_args["width"]
        # The first step is observed before the first checkpoint.
        steps.add(step)
        early = len(steps) < 2
        if early or width == {UNDISTURBED} or (folder / "release").exists():
            return
        (folder / f"{{width}}.{{os.getpid()}}.held").touch()
        while not (folder / "release").exists() and _process.received is None:
            time.sleep(0.05)
"""

#: How long all that a test waits for may take on a busy machine.
PATIENCE_SECONDS = 300.0


class ClusterSweep:
    """The sweep in a folder, and commands that drive it."""

    def __init__(self, folder: Path, executor: str, arguments: str) -> None:
        self.folder, self.out = folder, folder / "out"
        self.file = folder / "sweep.toml"
        self.file.write_text(SWEEP)
        self.executor = ("--executor", executor, "--executor-args", arguments)
        self.witness = folder / "witness"
        self.witness.mkdir()
        write_plugin(self.witness, "witness", WITNESS)
        path = [str(self.witness), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "WITNESS_FOLDER": str(self.witness),
            "PYTHONPATH": os.pathsep.join(path),
        }

    def command(self, *options: str) -> list[str]:
        """The words of `iclbench sweep` with this file."""
        words = [sys.executable, "-m", "iclbench", "sweep", str(self.file), "--out", str(self.out)]
        return [*words, "--engine", "plain", "--checkpoint-seconds", "0", *options]

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the sweep to its end, or only ask for its status."""
        return subprocess.run(
            self.command(*options),
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        """Start the sweep with the executor; its output goes to a file."""
        with log.open("wb") as output:
            return subprocess.Popen(
                self.command(*self.executor),
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait_until_held(self, width: int, after: int | None = None) -> int:
        """Wait until the program of this width is held; the process, another one than `after`."""
        wait_until(lambda: self._held(width) - {after}, f"width {width} has a checkpoint")
        (process,) = self._held(width) - {after}
        return process

    def _held(self, width: int) -> set[int | None]:
        return {int(file.name.split(".")[1]) for file in self.witness.glob(f"{width}.*.held")}

    def release(self) -> None:
        """Let programs train to their end."""
        (self.witness / "release").touch()

    def records(self) -> list[Record]:
        """The records that the sweep has left."""
        return [read_record(path) for path in RecordStore(self.out).paths()]

    def assert_twelve_records_of_the_same_bits(self, folder: Path) -> None:
        """Every cell has one record, and all are as the executor `local` makes them."""
        expected = sweep(self.file, out=folder, engine="plain").records
        records = {record.id: record for record in self.records()}
        assert len(self.records()) == len(expected) == CELLS
        assert set(records) == {record.id for record in expected}
        for record in expected:
            other = records[record.id]
            assert other.weights_file == record.weights_file  # named by their content
            assert other.training.curve == record.training.curve
            assert other.metrics == record.metrics


@contextmanager
def shown_on_failure(*patterns: tuple[Path, str]) -> Iterator[None]:
    """Print the files that match, if the block fails."""
    try:
        yield
    except BaseException:
        for folder, pattern in patterns:
            for file in sorted(folder.glob(pattern)):
                print(f"--- {file}\n{file.read_text(errors='replace')[-3000:]}")
        raise


def wait_until(ready: Callable[[], object], what: str) -> None:
    """Wait until something holds; fails if that takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        assert time.monotonic() < deadline, f"it took too long: {what}"
        time.sleep(0.1)
