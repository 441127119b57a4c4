"""How many replicas are worth stacking, and how many fit in memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..api.prompts import Batch
from .replicas import Loss, Replicas

#: On a CPU: elements a thread that an operator should write at most. Below it, what an operator
#: costs apart from its arithmetic is shared by stacking; above it, arithmetic and caches bound the
#: step.
#: `python -m benchmarks.stacking` prints the measurements behind it.
CPU_ELEMENTS = 150_000

#: On a CPU: elements an operator above which a batch is taken in slices, which stay in the caches
#: and are divided among threads.
SLICE_ELEMENTS = 200_000

#: Largest relative difference of sliced and whole gradients at the start.
AGREEMENT = 1e-3

#: On a CPU: elements an operator above which replicas are trained by themselves, by operators that
#: can't be vmapped and by threads.
ALONE_ELEMENTS = 30_000


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that run, by name, but for views, and the elements that they write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[str, int] = {}
        self.elements = 0

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


def elements(replicas: Replicas, batch: Batch, loss: Loss) -> float:
    """What an operator of one replica's forward and backward pass writes on average.

    What follows from it follows from a count, and not from a timing, so that a run chooses alike
    every time and continues to the same bits with as many threads.
    """
    trial = replicas.copy()
    trial.gradient_of(0, batch, loss)  # what is made once is not counted
    replicas.binds = trial.binds  # so that no forward pass of the training is tried in vain
    with Operators() as seen:
        trial.gradient_of(0, batch, loss)
    return float(seen.elements / max(1, seen.total))


def cpu_slices(replicas: Replicas, batch: Batch, loss: Loss, each: float) -> int:
    """Parts in which a replica's batch is taken on a CPU; `each` is what an operator writes.

    An even number if it can be, so that two threads have as much to do. One, where a model keeps
    buffers, or where sliced and whole gradients differ: its predictions then depend on the prompts
    beside them.
    """
    size = batch.target.shape[1]
    slices = min(size, 2 * math.ceil(each / SLICE_ELEMENTS / 2))
    if each <= SLICE_ELEMENTS or slices <= 1 or any(True for _ in replicas.template.buffers()):
        return 1
    trial = replicas.copy()
    _, whole = trial.gradient_of(0, batch, loss)
    trial.slices = slices
    _, sliced = trial.gradient_of(0, batch, loss)
    return slices if bool((sliced - whole).norm() <= AGREEMENT * whole.norm()) else 1


def cpu_group(replicas: Replicas, each: float) -> int:
    """Replicas to stack on a CPU: as many as keep operators within `CPU_ELEMENTS` a thread.

    One, where operators are large: threads are then shared out among replicas, which gains more
    than an operator that they divide.
    """
    if each > ALONE_ELEMENTS:
        return 1
    most = min(replicas.count, int(CPU_ELEMENTS * torch.get_num_threads() / max(1.0, each)))
    # Groups of one size: 16 in two of 8, not in one of 12 and one of 4.
    return math.ceil(replicas.count / math.ceil(replicas.count / most))


def fitting_group(replicas: Replicas, batch: Batch, loss: Loss) -> int:
    """Replicas whose step fits in the device's memory together: halved until it does.

    Raises torch.OutOfMemoryError where one does not.
    """
    trial = replicas.copy()
    while True:
        try:
            trial.gradients(batch, loss)
            return trial.group
        except torch.OutOfMemoryError:
            if trial.group == 1:
                raise
        trial.group = (trial.group + 1) // 2
        torch.cuda.empty_cache()


def measured_speedup(replicas: Replicas, batch: Batch, loss: Loss) -> float:
    """How many times as fast a replica's gradient is in its group as alone; each timed once, warm.

    It is reported and decides nothing.
    """
    trial = replicas.copy()

    def seconds(run: Callable[[], object]) -> float:
        for _ in range(2):
            _wait(trial)
            started = time.perf_counter()
            run()
            _wait(trial)
        return time.perf_counter() - started

    alone = seconds(lambda: trial.gradient_of(0, batch, loss))
    return alone * trial.count / seconds(lambda: trial.gradients(batch, loss))


def _wait(replicas: Replicas) -> None:
    if replicas.flat.device.type == "cuda":
        torch.cuda.synchronize(replicas.flat.device)
