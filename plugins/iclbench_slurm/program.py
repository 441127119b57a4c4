"""Program: what a Slurm job runs. It saves a checkpoint at a signal and has itself requeued.

Slurm's warning before a time limit or a preemption is SIGUSR2 (submitit's choice), and `scancel`
sends SIGTERM. submitit would requeue the job within the handler of SIGUSR2, in the middle of a
step. A program first ends as at SIGTERM, with a checkpoint between two steps, and requeues then.
"""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from submitit.core.utils import UncompletedJobError
from submitit.helpers import Checkpointable

from iclbench import interruptible, report, write_atomically


class Program(Checkpointable):
    """One job, as JSON: `function` is an address, and the outcome is written to a file."""

    def __init__(self, function: str, job: str, outcome: str) -> None:
        self.function, self.job, self.outcome = function, job, outcome

    def __call__(self) -> None:
        """Run the job and write its outcome, unless the process ends or is requeued."""
        # As many threads as cores, before torch is imported.
        os.environ.setdefault("OMP_NUM_THREADS", os.environ.get("SLURM_CPUS_PER_TASK", "1"))
        # Where submitit installed its handler; it requeues the job and ends the process.
        requeue: Any = signal.getsignal(signal.SIGUSR2)
        preempted = []

        def at_warning(*_: object) -> None:
            preempted.append(True)
            signal.raise_signal(signal.SIGTERM)

        # submitit ignores SIGTERM; a handler of someone else would be left in place.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            # Several signals may come; the first one is enough.
            with interruptible(second=lambda *_: None):
                signal.signal(signal.SIGUSR2, at_warning)
                self._write(self._answer())
        except KeyboardInterrupt as interruption:
            report(str(interruption) or "interrupted")
            if not preempted:
                raise SystemExit(128 + signal.SIGTERM) from None
            self._requeue(requeue)

    def _answer(self) -> dict[str, Any]:
        try:
            function = pkgutil.resolve_name(self.function)
            return {"result": function(json.loads(self.job))}
        except (Exception, SystemExit) as error:  # a plugin may call sys.exit
            return {"error": f"{type(error).__name__}: {error}"}

    def _requeue(self, requeue: Any) -> None:
        try:
            requeue(signal.SIGUSR2, None)
        except (UncompletedJobError, subprocess.SubprocessError, OSError) as error:
            report(f"not requeued: {error}")
            self._write({"error": "interrupted, and not requeued; the same command continues it"})

    def _write(self, outcome: dict[str, Any]) -> None:
        write_atomically(Path(self.outcome), json.dumps(outcome).encode())
