"""The speed of stacked groups of replicas on a CPU, by the size of operators.

    python -m benchmarks.stacking [--threads N] [--json FILE]

For models of several sizes, prints the mean number of elements that an operator of one replica's
step writes, and the speed of a step of 16 replicas in groups of 2, 4, 8 and 16, or in parallel
threads, relative to one replica after another. Numbers are medians over rounds that take turns: CPU
time with one thread, wall-clock time with more.
"""

from __future__ import annotations

import statistics
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from iclbench import TrainingContext, full_precision
from iclbench.training.gradients.binding import NoFormError
from iclbench.training.gradients.capacity import (
    cpu_group_size,
    elements_per_operator,
)
from iclbench.training.gradients.leading import Leading
from iclbench.training.gradients.program import GradientProgram
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.gradients.vmapped import Vmapped
from iclbench.training.threads import map_at_once, one_thread

from . import argument_parser
from .configurations import PREFIXES, Configuration
from .engine import EngineLoop
from .measured import measured, publish
from .timing import Clock, clock_kind

REPLICAS, ROUNDS, GROUPS = 16, 5, (2, 4, 8, 16)


def cases() -> list[Configuration]:
    """Configurations from small to large operators."""
    sequence_models = [
        Configuration(f"{model} {w}, batch {b}", model, PREFIXES, {"layers": 1, "width": w}, b)
        for model in ("transformer", "baseconv")
        for w, b in ((8, 4), (16, 16), (32, 16), (32, 64), (64, 64))
    ]
    return [
        *sequence_models,
        Configuration("lsa, batch 64", "lsa", "least-squares", {"layers": 1, "heads": 1}, 64),
        Configuration("lsa, batch 256", "lsa", "least-squares", {"layers": 1, "heads": 1}, 256),
        Configuration(
            "linear-transformer, batch 64", "linear-transformer", "linear-system", {}, 64
        ),
        Configuration("gd-transformer, batch 64", "gd-transformer", "categorical", {}, 64),
    ]


def row(configuration: Configuration) -> dict[str, object]:
    """The table row of one model."""
    training = EngineLoop(configuration, REPLICAS, "cpu").training
    replicas, loss = training.replicas, training.task.loss
    batch: Any = training.trial()
    context = TrainingContext(torch.device("cpu"), torch.float32, configuration.batch)
    elements = elements_per_operator(Threaded(replicas.first(), loss, context), batch)

    def grouped(size: int) -> GradientProgram:
        try:
            return Leading(replicas, loss, context, size)
        except NoFormError:
            return Vmapped(replicas, loss, context, size)

    ways: dict[str, GradientProgram] = {
        "sequential": Threaded(replicas, loss, context),
        **{f"groups of {size}": grouped(size) for size in GROUPS},
    }
    if torch.get_num_threads() > 1:
        ways["threads"] = Threaded(replicas, loss, context, map_parts=map_at_once(REPLICAS))
    times: dict[str, list[float]] = {way: [] for way in ways}
    kind = ("wall", "cpu").index(clock_kind("cpu"))
    for turn in range(ROUNDS + 1):
        for way, program in ways.items():
            clock = Clock("cpu")
            with one_thread() if way == "threads" else nullcontext():
                program(batch)
            if turn:
                times[way].append(clock.read()[kind])
    sequential = statistics.median(times.pop("sequential"))
    chosen = cpu_group_size(REPLICAS, elements)
    return {
        "model": configuration.name,
        "elements per operator": f"{elements:.1e}",
        **{way: f"{sequential / statistics.median(seconds):.2f}" for way, seconds in times.items()},
        "chosen": f"groups of {chosen}" if chosen > 1 else "sequential",
    }


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the table to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with full_precision(torch.float32):
        rows = [row(configuration) for configuration in cases()]
    command = f"python -m benchmarks.stacking --threads {arguments.threads}"
    publish(measured(command, rows), arguments.json)


if __name__ == "__main__":
    main()
