"""Planning a sweep of 100,000 cells, and skipping 1,000 finished ones.

    python -m benchmarks.sweeps [--json FILE]

It takes some minutes: the records that are skipped are made first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import argument_parser
from .measured import measured, publish
from .process import used_by

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


def measurements(folder: Path) -> Iterator[dict[str, str]]:
    """The lines of the table."""
    planned, finished = folder / "planned.toml", folder / "finished.toml"
    rates = [round(1e-5 * (index + 1), 5) for index in range(500)]
    planned.write_text(PLANNED.format(rates=rates))
    finished.write_text(FINISHED.format(values=[index / 1000 for index in range(1000)]))
    words = ("-m", "iclbench", "sweep", str(planned), "--dry-run", "--out", str(folder / "none"))
    used = used_by(*words)
    yield {"what": "`sweep --dry-run` of 100,000 cells", **used.cells}
    out = str(folder / "out")
    used_by("-c", MAKE, str(finished), out)
    skipped = [used_by("-c", SKIP, str(finished), out) for _ in range(3)]
    wall, cpu = min(tuple(map(float, used.output.split())) for used in skipped)
    best = {"CPU s": f"{cpu:.2f}", "wall s": f"{wall:.2f}", "peak GB": ""}
    yield {"what": "skipping 1,000 finished cells, without the start of Python, best of 3", **best}


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argument_parser(__doc__)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measurements(Path(folder)))
    publish(measured("python -m benchmarks.sweeps", rows), arguments.json)


if __name__ == "__main__":
    main()
