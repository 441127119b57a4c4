"""Reading, verifying and making records.

    python -m benchmarks.records [--records 1000] [--verified 24] [--prompts 1000000] [--json FILE]

Prints, with the date and commit, the CPU seconds of processes with one thread (which a busy machine
affects less than the wall clock), their wall-clock seconds and the most memory of the process:

- `leaderboard show` of one record in full, and the summary of so many on a hundred boards;
- `verify` of records of one board in this process, and with a worker per core;
- a solver's run, and `import torch` alone;
- solvers on so many prompts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from iclbench import Record, RecordStore, run
from iclbench.api.record import MAIN

from . import argument_parser
from .measured import measured, publish
from .process import used_by

BOARDS = 100
TASK = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 256}
#: Solvers of every kind: a sum, a factorization, and two iterations.
SOLVERS = ("averaging", "least-squares-cholesky", "conjugate-gradient", "gradient-descent")


def many(folder: Path, count: int) -> None:
    """Write sound records that differ in an argument, on boards that differ in another."""
    first = run("constant", **TASK, model_args={"value": 0.0}, out=folder)
    store = RecordStore(folder)
    for index in range(1, count):
        store.write(variant(first, index))


def variant(first: Record, index: int) -> Record:
    """The record as if it were of another model on one of the boards."""
    noise = (index % BOARDS) / 1000
    args = {"value": float(index)}
    spec = first.spec.model_copy(
        update={"model_args": args, "task_args": {**first.spec.task_args, "noise": noise}}
    )
    board = first.main.model_copy(update={"task_args": {**first.main.task_args, "noise": noise}})
    return first.model_copy(
        update={"spec": spec, "id": spec.id, "evaluations": {MAIN: board}}
    ).sealed()


def measurements(
    folder: Path, records: int, verified: int, prompts: int
) -> Iterator[dict[str, object]]:
    """The lines of the table."""

    def line(what: str, *words: str) -> dict[str, object]:
        return {"what": what, **used_by(*words).cells}

    solver = ["run", "--model", "averaging", "--task", "least-squares", "--out"]
    yield line("import torch", "-c", "import torch")
    yield line("a solver's run", "-m", "iclbench", *solver, str(folder / "solver"))
    show = ["-m", "iclbench", "leaderboard", "show"]
    yield line("leaderboard show, 1 record in full", *show, str(folder / "solver"))
    many(folder / "many", records)
    summary = f"leaderboard show, {records:,} records, summary of {min(records, BOARDS)} boards"
    yield line(summary, *show, str(folder / "many"))
    for value in range(verified):
        run("constant", **TASK, model_args={"value": float(value)}, out=folder / "verified")
    verify = ["-m", "iclbench", "verify", str(folder / "verified"), "--workers"]
    for workers in (1, os.cpu_count() or 1):
        yield line(f"verify, {verified} records, workers: {workers}", *verify, str(workers))
    for name in SOLVERS:
        words = ["-m", "iclbench", "run", "--model", name, "--task", "least-squares"]
        words += ["--eval-prompts", str(prompts), "--out", str(folder / "prompts")]
        yield line(f"{name}, {prompts:,} prompts", *words)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--verified", type=int, default=24)
    parser.add_argument("--prompts", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(
            measurements(Path(folder), arguments.records, arguments.verified, arguments.prompts)
        )
    command = (
        f"python -m benchmarks.records --records {arguments.records} "
        f"--verified {arguments.verified} --prompts {arguments.prompts}"
    )
    publish(measured(command, rows), arguments.json)


if __name__ == "__main__":
    main()
