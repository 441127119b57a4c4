"""Planning a sweep of 100,000 cells, and skipping 1,000 finished ones.

    python -m benchmarks.sweeps

It takes some minutes: the records that are skipped are made first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import argument_parser

PLANNED = """
[defaults]
task = "least-squares"
seeds = 1
[[grid]]
model = ["transformer", "baseconv"]
dtype = ["float32", "float64"]
model_args = {{ layers = [1, 2, 3, 4, 6] }}
task_args = {{ noise = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] }}
recipe_args = {{ learning_rate = {rates} }}
"""
FINISHED = """
[defaults]
task = "least-squares"
task_args = {{ dim = 2, examples = 4 }}
eval_prompts = 32
[[grid]]
model = "constant"
model_args = {{ value = {values} }}
"""
MAKE = "import sys, iclbench; iclbench.sweep(sys.argv[1], out=sys.argv[2])"
SKIP = """
import sys, time
from iclbench import sweep
import iclbench.sweeps.sweep
began, cpu = time.perf_counter(), time.process_time()
result = sweep(sys.argv[1], out=sys.argv[2])
assert result.already_done == 1000, result.already_done
print(time.perf_counter() - began, time.process_time() - cpu)
"""


def measured(*words: str) -> tuple[str, float, float, float]:
    """What a command prints, its seconds, its CPU seconds, and its memory in GB."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    seconds = time.perf_counter() - began
    return output, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    """Print the two measurements as lines."""
    argument_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        planned, finished = folder / "planned.toml", folder / "finished.toml"
        rates = [round(1e-5 * (index + 1), 5) for index in range(500)]
        planned.write_text(PLANNED.format(rates=rates))
        finished.write_text(FINISHED.format(values=[index / 1000 for index in range(1000)]))
        words = (sys.executable, "-m", "iclbench", "sweep", str(planned), "--dry-run")
        output, seconds, cpu, memory = measured(*words, "--out", str(folder / "none"))
        print(f"sweep --dry-run, {output.splitlines()[0]}")
        print(f"  {seconds:.1f} s, {cpu:.1f} s of CPU time, {memory:.2f} GB")
        out = str(folder / "out")
        measured(sys.executable, "-c", MAKE, str(finished), out)
        skipped = [measured(sys.executable, "-c", SKIP, str(finished), out)[0] for _ in range(3)]
        seconds, cpu = min(tuple(map(float, text.split())) for text in skipped)
        print("sweep, 1000 finished runs skipped, beside starting Python")
        print(f"  {seconds:.2f} s, {cpu:.2f} s of CPU time; the best of 3")


if __name__ == "__main__":
    main()
