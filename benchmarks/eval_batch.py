"""The speed of a forward pass by the number of prompts at once.

    python -m benchmarks.eval_batch [--device cuda] [--json FILE]

For models of published sizes, prints the time of 1,024 prompts at once, and how many times faster
smaller batches are. Numbers are medians over rounds that take turns: CPU time of one thread on a
CPU, wall-clock time on a GPU.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import torch

from iclbench import RunSpec, full_precision
from iclbench.api.prompts import map_tensors, to_device
from iclbench.devices import keep_freed_memory
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve

from . import argument_parser
from .measured import measured, publish
from .timing import Clock, clock_kind

PROMPTS, ROUNDS, SIZES = 1024, 3, (512, 256, 128, 64, 32)
STACK = {"layers": 4, "width": 64}
PUBLISHED: dict[str, Any] = {"dim": 5, "examples": 20}
#: Model, its arguments, task and its arguments.
CASES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("least-squares-qr", {}, "least-squares", PUBLISHED),
    ("linear-transformer", {"layers": 4}, "least-squares", PUBLISHED),
    ("gd-transformer", {}, "categorical", {}),
    ("lsa", {"layers": 4}, "least-squares", PUBLISHED),
    *(
        (model, STACK, "least-squares", PUBLISHED)
        for model in (
            "transformer", "baseconv", "llama", "retention", "gated-linear-attention", "hgrn2",
            "delta-net", "gated-delta-net", "mamba", "mamba2", "hyena", "h3", "lstm",
        )
    ),
]  # fmt: skip


def row(model: str, args: dict[str, Any], task: str, task_args: dict[str, Any], device: str) -> Any:
    """The table row of one model."""
    plan = resolve(RunSpec(model=model, model_args=args, task=task, task_args=task_args))
    module = initial_module(plan, 0).to(device).eval()
    (batch,) = plan.task.evaluation_batches(PROMPTS, 0, torch.float32)
    prompt = to_device(batch.prompt, torch.device(device))
    times: dict[int, list[float]] = {size: [] for size in (PROMPTS, *SIZES)}
    kind = ("wall", "cpu").index(clock_kind(device))
    for turn in range(ROUNDS + 1):
        for size, seconds in times.items():
            clock = Clock(device)
            for start in range(0, PROMPTS, size):
                module(map_tensors(lambda t, s=start, n=size: t[s : s + n], prompt))
            if turn:
                seconds.append(clock.read()[kind])
    medians = {size: statistics.median(seconds) for size, seconds in times.items()}
    whole = medians.pop(PROMPTS)
    faster = {f"{size} at once": f"{whole / seconds:.2f}" for size, seconds in medians.items()}
    return {"model": model, "task": task, f"ms, {PROMPTS:,} at once": f"{1e3 * whole:.3g}"} | faster


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.device == "cpu":
        keep_freed_memory()  # as an evaluation does
    with full_precision(torch.float32), torch.no_grad():
        rows = [row(*case, arguments.device) for case in CASES]
    command = f"python -m benchmarks.eval_batch --device {arguments.device}"
    publish(measured(command, rows), arguments.json)


if __name__ == "__main__":
    main()
