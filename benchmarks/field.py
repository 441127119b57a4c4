"""The speed of two papers' own training code beside the engine, on least squares.

    python -m benchmarks.field --garg CLONE --precision-ls CLONE [--seconds 20] [--rounds 3]
        [--only NAME …] [--json FILE]
    python -m benchmarks.field --report FILE

Times steps per core second with one thread: batch 256, width 64, one head, a loss after every
example, D = 5 and N = 20. Each training runs in its own process, in turn with the engine, by its
own `train.py`, as in `benchmarks.accuracy`. The first quarter of the time warms up. Ratios are
medians over the rounds, with their range.
"""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from iclbench.files import write_atomically

from . import argument_parser
from .accuracy import chosen, read_rows
from .accuracy_trainings import garg, ours, precision_ls
from .measured import facts
from .watch import EXAMPLES, Watch

BATCH, WIDTH = 256, 64
#: Every curriculum at its end, so that all steps are alike.
AT_END = {"points": {"start": EXAMPLES + 1, "end": EXAMPLES + 1}, "dims": {"start": 5, "end": 5}}
#: The published trainings by name: the paper's, and ours of the same model.
Pair = tuple[Callable[[float], Watch], Callable[[float], Watch]]


def pairs(clone: str | None, precision_clone: str | None) -> dict[str, Pair]:
    """Every training of a paper with the engine's training of the same model."""
    named: dict[str, Pair] = {}
    for layers in (2, 12) if clone is not None else ():
        model = {"n_layer": layers, "n_embd": WIDTH, "n_head": 1}
        changes = {"model": model, "training": {"batch_size": BATCH, "curriculum": AT_END}}
        named[f"Garg et al., GPT-2, {layers} layers"] = (
            functools.partial(garg, clone=clone, size="tiny", changes=changes, evaluates=False),
            _engine("transformer", layers),
        )
    shapes = (("attn", "transformer", 2), ("attn", "transformer", 12),
              ("base_conv", "baseconv", 3), ("base_conv", "baseconv", 12))  # fmt: skip
    for mixer, ours_name, layers in shapes if precision_clone is not None else ():
        points = {"start": EXAMPLES, "end": EXAMPLES}
        training = {"batch_size": BATCH, "curriculum": {"points": points}}
        changes = {"model": {"n_embd": WIDTH, "n_head": 1}, "training": training}
        theirs = functools.partial(
            precision_ls, clone=precision_clone, mixer=mixer, layers=layers,
            config="least_squares_icl", changes=changes, evaluates=False,
        )  # fmt: skip
        name = f"precision-ls, {ours_name}, {layers} layers"
        named[name] = theirs, _engine(ours_name, layers)
    return named


def _engine(model: str, layers: int) -> Callable[[float], Watch]:
    return functools.partial(
        ours, model=model, evaluates=False, task="least-squares-prefixes",
        model_args={"layers": layers, "width": WIDTH},
        recipe_args={"batch": BATCH, "steps": 10**6},
    )  # fmt: skip


def steps_per_second(train: Callable[[float], Watch], limit: float) -> float:
    """Steps per core second after a quarter of the time; runs in its own process."""
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(sys.stderr):
        points = train(limit).points
    begun = next(i for i, (_, seconds, _) in enumerate(points) if seconds >= limit / 4)
    first, last = points[min(begun, len(points) - 2)], points[-1]
    return (last[0] - first[0]) / (last[1] - first[1])


def measure(pair: Pair, limit: float, rounds: int) -> dict[str, list[float]]:
    """The speeds of the paper's code and of the engine, round by round."""
    processes = multiprocessing.get_context("spawn")
    speeds: dict[str, list[float]] = {"theirs": [], "engine": []}
    for _ in range(rounds):
        for name, train in zip(speeds, pair, strict=True):
            with ProcessPoolExecutor(1, mp_context=processes) as pool:
                speeds[name].append(pool.submit(steps_per_second, train, limit).result())
    return speeds


def table(rows: list[dict[str, Any]]) -> str:
    """The rows beside one another."""
    lines = []
    for row in rows:
        ratios = [e / t for e, t in zip(row["engine"], row["theirs"], strict=True)]
        lines.append(
            {
                "training": row["training"],
                "theirs, steps/s": f"{statistics.median(row['theirs']):.3g}",
                "engine, steps/s": f"{statistics.median(row['engine']):.3g}",
                "faster by": f"{statistics.median(ratios):.2f} "
                f"({min(ratios):.2f}–{max(ratios):.2f})",
                "date, commit": f"{row['date']}, {row['commit']}",
            }
        )
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--garg", metavar="CLONE", help="a clone of dtsip/in-context-learning")
    parser.add_argument("--precision-ls", metavar="CLONE", help="one of HazyResearch/precision-ls")
    parser.add_argument("--seconds", type=float, default=20.0, help="core seconds of each training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="trainings whose names contain this")
    parser.add_argument(
        "--json", type=Path, help="write the rows to this file; those of others stay"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="print a file's table only")
    arguments = parser.parse_args()
    if arguments.report is not None:
        print(table(json.loads(arguments.report.read_text())))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    rows = read_rows(arguments.json)
    named = pairs(arguments.garg, arguments.precision_ls)
    for name, pair in chosen(named, arguments.only).items():
        speeds = measure(pair, arguments.seconds, arguments.rounds)
        rows[name] = {"training": name, **speeds, **facts()}
        if arguments.json is not None:
            text = json.dumps([*rows.values()], indent=1) + "\n"
            write_atomically(arguments.json, text.encode())
    print(table([*rows.values()]))


if __name__ == "__main__":
    main()
