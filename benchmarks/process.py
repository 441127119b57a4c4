"""What a process of its own uses: time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import NamedTuple

#: Runs a command and prints, as its last line, its CPU seconds and the most memory, in KiB (macOS
#: counts it in bytes). A process of its own does it, since the system counts the memory of what
#: starts a command as if it were the command's.
MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
unit = 1024 if sys.platform == "darwin" else 1
print(used.ru_utime + used.ru_stime, used.ru_maxrss / unit)
sys.exit(code)
"""


class Used(NamedTuple):
    """CPU seconds of a process and of those that it started, wall-clock seconds, and its memory."""

    cpu: float
    wall: float
    gigabytes: float
    #: What it printed.
    output: str

    @property
    def cells(self) -> dict[str, str]:
        """The numbers as cells of a table."""
        return {
            "CPU s": f"{self.cpu:.2f}",
            "wall s": f"{self.wall:.2f}",
            "peak GB": f"{self.gigabytes:.2f}",
        }


def used_by(*words: str) -> Used:
    """What a Python process with one thread uses; raises CalledProcessError if it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # With it, Python would compile every module anew; users have them compiled.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    command = [sys.executable, "-c", MEASURE, sys.executable, *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, text=True)
    wall = time.perf_counter() - began
    output, _, numbers = done.stdout.rstrip("\n").rpartition("\n")
    cpu, kibibytes = map(float, numbers.split())
    return Used(cpu, wall, kibibytes * 1024 / 1e9, output)
