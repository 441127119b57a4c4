"""When stacking pays on a CPU: the speed of groups of replicas against the size of operators.

    python -m benchmarks.stacking

For models of several sizes: the elements that an operator of one replica's step writes on average,
and how many times as fast a step of 16 replicas is in groups of 2, 4, 8 and 16 as one after
another; medians of several rounds that take turns, by CPU time, with one thread.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from tabulate import tabulate

from iclbench.precision import full_precision
from iclbench.training.engine import batch_of
from iclbench.training.grouping import CPU_ELEMENTS, cpu_group, elements

from .configurations import PREFIXES, Configuration
from .engine import EngineLoop
from .timing import Clock

REPLICAS, ROUNDS, GROUPS = 16, 5, (1, 2, 4, 8, 16)


def cases() -> list[Configuration]:
    """Small to large operators."""
    found = [
        Configuration(f"{model} {w}, batch {b}", model, PREFIXES, {"layers": 1, "width": w}, b)
        for model in ("transformer", "baseconv")
        for w, b in ((8, 4), (16, 16), (32, 16), (32, 64), (64, 64))
    ]
    return [
        *found,
        Configuration("lsa, batch 64", "lsa", "least-squares", {"layers": 1, "heads": 1}, 64),
        Configuration("lsa, batch 256", "lsa", "least-squares", {"layers": 1, "heads": 1}, 256),
        Configuration(
            "linear-transformer, batch 64", "linear-transformer", "linear-system", {}, 64
        ),
        Configuration("gd-transformer, batch 64", "gd-transformer", "categorical", {}, 64),
    ]


def row(configuration: Configuration) -> dict[str, object]:
    """One model's."""
    training = EngineLoop(configuration, REPLICAS, "cpu").training
    replicas, loss = training.replicas, training.task.loss
    batch: Any = batch_of(training.trial(1), 0)
    replicas.slices = 1
    each = elements(replicas, batch, loss)
    times: dict[int, list[float]] = {group: [] for group in GROUPS}
    for turn in range(ROUNDS + 1):
        for group, found in times.items():
            replicas.group = group
            clock = Clock("cpu")
            replicas.gradients(batch, loss)
            if turn:
                found.append(clock.read()[1])
    alone = statistics.median(times[1])
    return {
        "model": configuration.name,
        "elements an operator": f"{each:.1e}",
        **{f"groups of {g}": f"{alone / statistics.median(times[g]):.2f}" for g in GROUPS[1:]},
        "chosen": cpu_group(replicas, each),
    }


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; at most {CPU_ELEMENTS:,} elements an operator\n")
    with full_precision(torch.float32):
        rows = [row(configuration) for configuration in cases()]
    print(tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
