"""When stacking pays on a CPU: the speed of groups of replicas against the size of operators.

    python -m benchmarks.stacking [--threads N]

For models of several sizes: the elements that an operator of one replica's step writes on average,
and how many times as fast a step of 16 replicas is in groups of 2, 4, 8 and 16, or divided among
threads, as one after another; medians of several rounds that take turns. With one thread by CPU
time, with more by the wall; they divide operators but where they divide replicas.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import nullcontext
from typing import Any

import torch
from tabulate import tabulate

from iclbench.api.capabilities import TrainingContext
from iclbench.devices import one_thread
from iclbench.precision import full_precision
from iclbench.training.gradients.binding import NoFormError
from iclbench.training.gradients.capacity import (
    CPU_ELEMENTS,
    cpu_group_size,
    elements_per_operator,
)
from iclbench.training.gradients.leading import Leading
from iclbench.training.gradients.program import GradientProgram
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.gradients.vmapped import Vmapped
from iclbench.training.threads import map_at_once

from .configurations import PREFIXES, Configuration
from .engine import EngineLoop
from .timing import Clock, clock_kind

REPLICAS, ROUNDS, GROUPS = 16, 5, (2, 4, 8, 16)


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
    batch: Any = training.trial()
    context = TrainingContext(torch.device("cpu"), torch.float32, configuration.batch)
    each = elements_per_operator(Threaded(replicas.first(), loss, context), batch)

    def grouped(size: int) -> GradientProgram:
        try:
            return Leading(replicas, loss, context, size)
        except NoFormError:
            return Vmapped(replicas, loss, context, size)

    ways: dict[str, GradientProgram] = {
        "one after another": Threaded(replicas, loss, context),
        **{f"groups of {size}": grouped(size) for size in GROUPS},
    }
    if torch.get_num_threads() > 1:
        at_once = map_at_once(REPLICAS)
        ways["among threads"] = Threaded(replicas, loss, context, map_parts=at_once)
    times: dict[str, list[float]] = {way: [] for way in ways}
    kind = ("wall", "cpu").index(clock_kind("cpu"))
    for turn in range(ROUNDS + 1):
        for way, program in ways.items():
            clock = Clock("cpu")
            with one_thread() if way == "among threads" else nullcontext():
                program(batch)
            if turn:
                times[way].append(clock.read()[kind])
    alone = statistics.median(times.pop("one after another"))
    chosen = cpu_group_size(REPLICAS, each)
    return {
        "model": configuration.name,
        "elements an operator": f"{each:.1e}",
        **{way: f"{alone / statistics.median(found):.2f}" for way, found in times.items()},
        "chosen": f"groups of {chosen}" if chosen > 1 else "alone",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    print(
        f"torch {torch.__version__}, threads: {torch.get_num_threads()}; at most "
        f"{CPU_ELEMENTS:,} elements an operator and thread\n"
    )
    with full_precision(torch.float32):
        rows = [row(configuration) for configuration in cases()]
    print(tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
