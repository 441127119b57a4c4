"""How many replicas one program takes, and in how many slices a batch is taken."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...api.errors import is_out_of_memory
from ...api.prompts import Batch
from ..replicas import Replicas
from .program import GradientProgram, Loss, prompts_of, replicas_of

#: On a CPU: most elements per thread that an operator should write. Below it, grouping replicas
#: shares the fixed cost of an operator; above it, arithmetic and caches bound the step.
#: `python -m benchmarks.stacking` prints the measurements behind it.
CPU_ELEMENTS = 150_000

#: On a CPU: elements per operator above which a batch is taken in slices, which stay in the caches
#: and are divided among threads.
SLICE_ELEMENTS = 200_000

#: Elements that the forward pass of a comparison may write: 1 GiB of float64, and about three times
#: as much with the backward pass.
COMPARED_ELEMENTS = 2**27

#: On a CPU: elements per operator above which replicas are trained one by one, divided among
#: threads, by operators that can't be vmapped.
ALONE_ELEMENTS = 30_000


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that run, by name, without views, and the elements that they write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[str, int] = {}
        self.elements = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import its compiler here, which takes seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        """Count, and run."""
        result = func(*args, **(kwargs or {}))
        name = str(func.overloadpacket).removeprefix("aten.")
        if not func.is_view and name != "_unsafe_view":
            self.counts[name] = self.counts.get(name, 0) + 1
            for value in result if isinstance(result, tuple | list) else (result,):
                if isinstance(value, torch.Tensor):
                    self.elements += value.numel()
        return result

    @property
    def total(self) -> int:
        """The number of operators."""
        return sum(self.counts.values())


def elements_per_operator(program: GradientProgram, batch: Batch) -> float:
    """Return what an operator of a program's forward and backward pass writes on average.

    The choice of a program rests on this count, not on a timing, so that a run chooses alike every
    time and continues to the same bits.
    """
    program(batch)  # what is made once is not counted
    with Operators() as operators:
        program(batch)
    return float(operators.elements / max(1, operators.total))


def prompts_at_once(replicas: Replicas, loss: Loss, batch: Batch) -> int:
    """Return how many prompts the paper's module may take at once in a comparison, at least one.

    Estimated from the elements that a forward pass of the first replica writes for two prompts.
    With 50,000 words and texts of 256 ids, four prompts reach `COMPARED_ELEMENTS`.
    """
    trial, few = replicas.first(), prompts_of(batch, 0, 2)
    prompt, target, _ = replicas_of(few, 0)
    with torch.no_grad(), Operators() as operators:
        loss(trial.predict(0, trial.flat[0], prompt), target)
    return max(1, int(COMPARED_ELEMENTS * len(target) / max(1, operators.elements)))


def cpu_slices(replicas: Replicas, prompts: int, elements: float) -> int:
    """Return the slices of one replica's batch on a CPU: an even number, for two threads.

    One, where a model keeps buffers, which each slice would update.
    """
    slices = min(prompts, 2 * math.ceil(elements / SLICE_ELEMENTS / 2))
    if elements <= SLICE_ELEMENTS or slices <= 1 or any(True for _ in replicas.template.buffers()):
        return 1
    return slices


def cpu_group_size(count: int, elements: float) -> int:
    """Return how many of `count` replicas to group on a CPU, by `CPU_ELEMENTS` per thread.

    One, where operators are large: dividing replicas among threads then gains more than dividing
    operators.
    """
    if elements > ALONE_ELEMENTS:
        return 1
    most = min(count, int(CPU_ELEMENTS * torch.get_num_threads() / max(1.0, elements)))
    # Balance the groups: 8 + 8 rather than 12 + 4.
    return math.ceil(count / math.ceil(count / most))


def fitting_group_size(count: int, make: Callable[[int], GradientProgram], batch: Batch) -> int:
    """Return how many replicas fit in the device's memory together: halved until they do.

    `make` makes a program for groups of that size. Raises what torch raises where one replica does
    not fit.
    """
    size = count
    while True:
        try:
            make(size)(batch)
            return size
        except Exception as error:
            if size == 1 or not is_out_of_memory(error):
                raise
        size = (size + 1) // 2
        torch.cuda.empty_cache()


def measured_speedup(grouped: GradientProgram, alone: GradientProgram, batch: Batch) -> float:
    """Return how many times as fast a replica's gradient is in its group as alone.

    `alone` computes the first replica's. Each is timed once, warm; the result decides nothing.
    """
    return _seconds(alone, batch) * len(batch.target) / _seconds(grouped, batch)


def _seconds(program: GradientProgram, batch: Batch) -> float:
    for _ in range(2):
        _wait(batch)
        started = time.perf_counter()
        program(batch)
        _wait(batch)
    return time.perf_counter() - started


def _wait(batch: Batch) -> None:
    if batch.target.device.type == "cuda":
        torch.cuda.synchronize(batch.target.device)
