"""Time to accuracy: core seconds to a median squared error on least squares (D = 5, N = 20).

    python -m benchmarks.accuracy --garg CLONE --precision-ls CLONE --seconds 480 --json FILE
    python -m benchmarks.accuracy --report FILE
    python -m benchmarks.accuracy --published

Trains one model after another, each in its own process with one thread: iclbench's by the recipe
`quick` and by published tunings, and, where a clone of their repository is given, those of Garg et
al. (github.com/dtsip/in-context-learning) and of precision-ls (Liu et al.,
github.com/HazyResearch/precision-ls) by their own code. Those need `scikit-learn`, `transformers`,
`einops` and `PyYAML`. All are evaluated on the same prompts. A training ends at the limit of
seconds or with its recipe. Time includes making the model and choosing an engine, not imports and
evaluations.

`--json` keeps the rows that the file holds of other trainings.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tabulate import tabulate

from iclbench import Record, RecordStore, write_atomically
from iclbench.runs.store import read_record
from iclbench.runs.tuned import read_tuning

from . import ROOT, argument_parser
from .accuracy_trainings import garg, ours, precision_ls
from .measured import facts
from .watch import DIM, EXAMPLES, Watch

LEVELS = (1e-1, 1e-2, 1e-3)
TUNINGS, RECORDS = ROOT / "leaderboards/tunings", ROOT / "leaderboards/records"
#: Steps of `quick` where it should take minutes instead of seconds; its own are 1,500.
LONGER = 15_000
#: The budget of the tunings that stand beside the papers' own recipes.
TUNED_FOR = "10m"
#: Makes and runs a training, given its limit in core seconds.
Train = Callable[[float], Watch]


def trainings(clone: str | None, precision_clone: str | None) -> dict[str, Train]:
    """Every training by name; those of a paper where its clone is given."""
    named: dict[str, Train] = {}
    for model in ("transformer", "baseconv"):
        train = functools.partial(ours, model=model)
        named[f"iclbench, {model}, quick"] = train
        longer = functools.partial(train, recipe_args={"steps": LONGER})
        named[f"iclbench, {model}, quick, {LONGER:,} steps"] = longer
    for path in sorted(TUNINGS.glob("*.json")):
        tuning = read_tuning(path)
        args = tuning.task_args
        if (tuning.task, args.get("dim"), args.get("examples")) == ("least-squares", DIM, EXAMPLES):
            train = functools.partial(ours, model=tuning.model, tuning=str(path))
            named[f"iclbench, {tuning.model}, tuned for {tuning.budget}"] = train
    if clone is not None:
        for size, shape in (("tiny", "3 × 64"), ("small", "6 × 128"), ("standard", "12 × 256")):
            name = f"Garg et al., {size} ({shape})"
            named[name] = functools.partial(garg, clone=clone, size=size)
    if precision_clone is not None:
        for mixer, layers in (("attn", 2), ("base_conv", 2), ("attn", 12), ("base_conv", 12)):
            train = functools.partial(
                precision_ls, clone=precision_clone, mixer=mixer, layers=layers
            )
            named[f"precision-ls, {mixer} ({layers} × 256)"] = train
    return named


def measure(name: str, train: Train, limit: float, threads: int) -> dict[str, Any]:
    """The row of one training; runs in its own process."""
    torch.set_num_threads(threads)
    with contextlib.redirect_stdout(sys.stderr):
        watch = train(limit)
    return {
        "training": name,
        "limit": limit,
        "threads": threads,
        "steps": watch.steps,
        "points": watch.points,
        **facts(),
    }


def seconds_to(level: float, points: list[tuple[int, float, float]]) -> float | None:
    """Core seconds at the first evaluation with at most this error; None if there was none."""
    return next((seconds for _, seconds, error in points if error <= level), None)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows beside one another."""
    lines = []
    for row in rows:
        reached = {level: seconds_to(level, row["points"]) for level in LEVELS}
        steps, seconds, _ = row["points"][-1]
        lines.append(
            {
                "training": row["training"],
                **{
                    f"s to {level:.0e}": "–" if time is None else f"{time:.0f}"
                    for level, time in reached.items()
                },
                "lowest": f"{min(error for *_, error in row['points']):.1e}",
                "core s": f"{seconds:.0f} of {row['limit']:.0f}",
                "steps": f"{steps:,}",
                "date, commit": f"{row['date']}, {row['commit']}",
            }
        )
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def against_papers(rows: list[dict[str, Any]]) -> str:
    """How long our trainings of the same architecture take to the lowest error of each paper's."""
    lines = []
    for row in rows:
        name = row["training"]
        if name.startswith("iclbench"):
            continue
        model = "baseconv" if "base_conv" in name else "transformer"
        seconds = row["points"][-1][1]
        lowest = min(error for *_, error in row["points"])
        for recipe in ("quick", f"quick, {LONGER:,} steps", f"tuned for {TUNED_FOR}"):
            ours = [r for r in rows if r["training"] == f"iclbench, {model}, {recipe}"]
            time = seconds_to(lowest, ours[0]["points"]) if ours else None
            lines.append(
                {
                    "of a paper": name,
                    "lowest": f"{lowest:.1e}",
                    "in core s": f"{seconds:.0f}",
                    "iclbench": f"{model}, {recipe}",
                    "core s to it": "–" if time is None else f"{time:.0f}",
                    "faster by": "–" if time is None else f"{seconds / time:.0f}",
                }
            )
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def published() -> str:
    """Core seconds of one seed of each published row to each level, by its validation curve."""
    paths = RecordStore(RECORDS).paths()
    records = [read_record(path) for path in paths if path.parent.name == "least-squares"]
    args = {"dim": DIM, "examples": EXAMPLES}
    rows = [
        record
        for record in records
        if record.track is not None and args.items() <= record.main.task_args.items()
    ]
    lines = [line for record in rows if (line := _published_line(record)) is not None]
    lines.sort(key=lambda line: (line["track"], float(line["lowest"])))
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def _published_line(record: Record) -> dict[str, str] | None:
    curve = record.validation_curve
    if curve is None or record.spec.dtype != "float32":
        return None
    # Digits are of the absolute error; the median over prompts, then over seeds.
    digits = np.median(np.array(curve.median, dtype=float), axis=0)
    errors = 10.0 ** (-2 * np.nan_to_num(digits, nan=-np.inf))
    points = list(zip(curve.steps, curve.seconds, errors, strict=True))
    reached = {level: seconds_to(level, points) for level in LEVELS}
    return {
        "model": record.spec.model,
        "track": str(record.track),
        **{
            f"s to {level:.0e}": "–" if time is None else f"{time:.1f}"
            for level, time in reached.items()
        },
        "lowest": f"{min(errors):.1e}",
        "seeds": str(len(record.seeds)),
        "processor, date": f"{record.environment.processor}, {record.created[:10]}",
    }


def read_rows(path: Path | None) -> dict[str, dict[str, Any]]:
    """The rows of a file by name; none without a file."""
    if path is None or not path.exists():
        return {}
    return {row["training"]: row for row in json.loads(path.read_text())}


def chosen(named: Mapping[str, Train], words: list[str]) -> dict[str, Train]:
    """The trainings whose names contain one of the words; raises SystemExit if there is none."""
    found = {name: named[name] for name in named if not words or any(w in name for w in words)}
    if not found:
        raise SystemExit(f"benchmarks: no training is named so; there are {'; '.join(named)}")
    return found


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--garg", metavar="CLONE", help="a clone of dtsip/in-context-learning")
    parser.add_argument(
        "--precision-ls", metavar="CLONE", help="a clone of HazyResearch/precision-ls"
    )
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="limit of core seconds for each"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="trainings whose names contain this")
    parser.add_argument("--json", type=Path, help="write the rows to this file, or update them")
    parser.add_argument("--report", type=Path, metavar="FILE", help="print a file's table only")
    parser.add_argument(
        "--published", action="store_true", help="print what the published rows took"
    )
    arguments = parser.parse_args()
    if arguments.published:
        print(published())
        return
    if arguments.report is not None:
        rows = list(read_rows(arguments.report).values())
        print(f"{table(rows)}\n\n{against_papers(rows)}")
        return
    for clone in filter(None, (arguments.garg, arguments.precision_ls)):
        if not Path(clone, "src/train.py").is_file():
            parser.error(f"{clone} is no clone: it has no src/train.py")
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    rows = read_rows(arguments.json)
    selected = chosen(trainings(arguments.garg, arguments.precision_ls), arguments.only)
    # A process for each: the papers' modules share names, and no training profits from another.
    processes = multiprocessing.get_context("spawn")
    for name, train in selected.items():
        with ProcessPoolExecutor(1, mp_context=processes) as pool:
            limits = arguments.seconds, arguments.threads
            rows[name] = pool.submit(measure, name, train, *limits).result()
        if arguments.json is not None:
            text = json.dumps(list(rows.values()), indent=1) + "\n"
            write_atomically(arguments.json, text.encode())
    print(f"{table(list(rows.values()))}\n\n{against_papers(list(rows.values()))}")


if __name__ == "__main__":
    main()
