"""Timing of loops that take turns (A B A B), by wall clock and CPU time."""

from __future__ import annotations

import ctypes
import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)


class Loop(Protocol):
    """A training loop; `advance(n)` takes n steps of all its models."""

    name: str
    replicas: int

    def advance(self, steps: int) -> None: ...

    @property
    def stages(self) -> dict[str, Callable[[Any], Any]]: ...


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def clock_kind(device: str) -> Literal["wall", "cpu"]:
    """The clock for speeds: CPU time with one thread, since the machine may be busy."""
    return "cpu" if device == "cpu" and torch.get_num_threads() == 1 else "wall"


class Clock:
    """Wall-clock and CPU seconds of this process since construction."""

    def __init__(self, device: str) -> None:
        self.device = device
        synchronize(device)
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        synchronize(self.device)
        return time.perf_counter() - self.wall, time.process_time() - self.cpu


class Timed(Protocol):
    """A loop whose `timed(n)` gives the wall-clock and CPU seconds of n steps."""

    def timed(self, steps: int) -> tuple[float, float]: ...


def steps_for(loop: Timed, seconds: float, unit: int, device: str) -> int:
    """The number of steps that take about this long. It also warms up the loop."""
    for _ in range(2):  # on a GPU a step is captured in the second chunk
        loop.timed(unit)
    wall, cpu = loop.timed(unit)
    once = (wall if clock_kind(device) == "wall" else cpu) / unit
    return max(unit, unit * round(seconds / max(once, 1e-9) / unit))


def interleave(
    loops: Sequence[Timed], unit: int, repeats: int, seconds: float, device: str
) -> list[dict[str, list[float]]]:
    """Seconds per step of every repeat, by loop and clock; the loops take turns."""
    counts = [steps_for(loop, seconds, unit, device) for loop in loops]
    times: list[dict[str, list[float]]] = [{"wall": [], "cpu": []} for _ in loops]
    for repeat in range(repeats):
        # Reverse every other round, so that a drift favours no loop.
        order = list(enumerate(zip(loops, counts, strict=True)))
        for index, (loop, count) in order if repeat % 2 == 0 else reversed(order):
            for kind, value in zip(("wall", "cpu"), loop.timed(count), strict=True):
                times[index][kind].append(value / count)
    return times


def stage_times(loop: Loop, repeats: int, device: str) -> dict[str, float]:
    """Median seconds of every stage of a step, per model."""
    times: dict[str, list[float]] = {}
    for _ in range(repeats + 1):
        value: Any = None
        for name, stage in loop.stages.items():
            clock = Clock(device)
            value = stage(value)
            wall, cpu = clock.read()
            times.setdefault(name, []).append(wall if clock_kind(device) == "wall" else cpu)
    # The first pass warms up.
    return {n: statistics.median(t[1:]) / loop.replicas for n, t in times.items()}


def counts() -> dict[Any, Callable[..., int]]:
    """Operation counts by shape for fused CPU operators that torch's counter does not know."""

    def added(onto: Any, a: Any, b: Any, **_: Any) -> int:
        return int(2 * math.prod(a) * b[-1])

    def attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(sdpa_flop_count(query, key, value))

    def attention_backward(grad: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return int(sdpa_backward_flop_count(grad, query, key, value))

    aten = torch.ops.aten
    return {
        aten.addmm_: added,
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
    }


def operations(loop: Loop) -> int:
    """Floating-point operations in matrix products of one model's step, forward and backward."""
    value: Any = None
    with FlopCounterMode(display=False, custom_mapping=counts()) as counter:
        for name, stage in loop.stages.items():
            if name != "optimizer":
                value = stage(value)
    return counter.get_total_flops() // loop.replicas


def matmul_peak(device: str, seconds: float = 0.5) -> dict[str, float]:
    """FLOP/s of a large float32 matrix product, by clock; the best of several.

    A product of this size keeps one core busy; a GPU needs a larger one, and several per reading of
    the clock, which waits for it.
    """
    size, products = (1024, 1) if device == "cpu" else (8192, 20)
    a, b = torch.randn(2, size, size, device=device)
    torch.mm(a, b)
    best = {"wall": 0.0, "cpu": 0.0}
    spent = 0.0
    while spent < seconds:
        clock = Clock(device)
        for _ in range(products):
            torch.mm(a, b)
        wall, cpu = clock.read()
        spent += wall if clock_kind(device) == "wall" else cpu
        for kind, value in (("wall", wall), ("cpu", cpu)):
            best[kind] = max(best[kind], 2 * products * size**3 / max(value, 1e-9))
    return best


def peak_memory(make: Callable[[], Loop], unit: int, device: str) -> int | None:
    """The peak of additional memory in bytes while building a loop and taking some steps.

    On a CPU, the growth of the largest resident set, read from Linux; None on other systems.
    """
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        make().advance(2 * unit)  # a step is captured in the second chunk
        gc.collect()
        torch.cuda.empty_cache()
        return torch.cuda.max_memory_allocated() - before
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident("VmRSS")
        make().advance(unit)
        return _resident("VmHWM") - before
    except OSError:
        return None


def _resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise OSError(name)
