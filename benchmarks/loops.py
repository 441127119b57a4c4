"""The loops of a configuration, each in a process of its own.

No loop's memory, warm caches of the allocator or settings of the process are then another's.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch

from iclbench.devices import one_thread
from iclbench.precision import full_precision

from .configurations import CONFIGURATIONS, Configuration
from .engine import EngineLoop, initial
from .reference import PlainLoop, reference_module
from .timing import Clock, Loop, operations, peak_memory, stage_times

REFERENCES = {"gpt2": "GPT2Model loop", "conv1d": "Conv1d loop"}

#: Forked, where that is possible, from one that has imported torch and used none of it.
PROCESSES: Any = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
PROCESSES.set_forkserver_preload(["benchmarks.loops", "transformers.models.gpt2"])


def makers(configuration: Configuration, device: str) -> dict[str, Callable[[], Loop]]:
    """Name → what makes the loop: the field's, a plain one on our module, the engine's."""
    found: dict[str, Callable[[], Loop]] = {}
    if configuration.reference != "none":
        name = REFERENCES[configuration.reference]

        def reference() -> Loop:
            task, _ = initial(configuration)
            module = reference_module(configuration, task)
            assert module is not None
            return PlainLoop(name, module, task, configuration.batch, device)

        found[name] = reference

    def plain() -> Loop:
        task, module = initial(configuration)
        return PlainLoop("plain loop", module, task, configuration.batch, device)

    found["plain loop"] = plain
    for count in configuration.replicas_cpu if device == "cpu" else configuration.replicas:
        found[f"iclbench, R = {count}"] = partial(EngineLoop, configuration, count, device)
    for count in configuration.replicas_compiled if device != "cpu" else ():
        found[f"iclbench, compiled, R = {count}"] = partial(
            EngineLoop, configuration, count, device, engine="compiled"
        )
    return found


class Worker:
    """A loop in a process: `timed(n)` takes n steps there, `report()` tells what it is."""

    def __init__(self, configuration: Configuration, name: str, device: str) -> None:
        self.name = name
        self._pipe, end = PROCESSES.Pipe()
        place = (configuration.name, name, device, torch.get_num_threads())
        self._process = PROCESSES.Process(target=serve, args=(end, *place), daemon=True)
        self._process.start()
        end.close()

    def timed(self, steps: int) -> tuple[float, float]:
        """Seconds of that many steps, by the wall and of the process's CPU time."""
        wall, cpu = self._ask("timed", steps)
        return wall, cpu

    def report(self) -> dict[str, Any]:
        """Its replicas, operations, memory, stages, the engine's share and what it noted."""
        found: dict[str, Any] = self._ask("report")
        return found

    def close(self) -> None:
        """End the process, which has nothing to keep."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _ask(self, *request: Any) -> Any:
        """The answer; ends the program where the process has ended, having said why."""
        try:
            self._pipe.send(request)
            return self._pipe.recv()
        except (EOFError, ConnectionError):
            raise SystemExit(f"benchmarks: {self.name} failed, see above") from None


def serve(pipe: Connection, configuration: str, name: str, device: str, threads: int) -> None:
    """Make the loop and answer, in a process of its own, until the pipe is closed."""
    torch.set_num_threads(threads)
    (chosen,) = (c for c in CONFIGURATIONS if c.name == configuration)
    made = makers(chosen, device)
    with full_precision(torch.float32):
        made["plain loop"]().advance(1)  # what torch sets up at its first use is no loop's
        memory = peak_memory(made[name], chosen.chunk, device)
        loop = made[name]()
        while True:
            try:
                request, *arguments = pipe.recv()
            except EOFError:
                return
            if request == "report":
                pipe.send(_report(loop, memory, chosen.chunk, device))
            else:
                clock = Clock(device)
                loop.advance(*arguments)
                pipe.send(clock.read())


def _report(loop: Loop, memory: int | None, unit: int, device: str) -> dict[str, Any]:
    share: float | None = None
    turns: AbstractContextManager[None] = nullcontext()
    alone: AbstractContextManager[None] = nullcontext()
    if isinstance(loop, EngineLoop):
        turns = loop.in_turn()
        if loop.training.choice.how.by_threads:
            alone = one_thread()  # as `Training.advance` takes steps
        # Elsewhere calls return early, and with more threads at once there are several at a time.
        if device == "cpu" and torch.get_num_threads() == 1:
            share = loop.overhead(unit * math.ceil(10 / unit))
    with turns:
        count = operations(loop)
    with alone:
        stages = stage_times(loop, 2, device)
    return {
        "replicas": loop.replicas,
        "flops": count,
        "peak_memory": memory,
        "stages": stages,
        "overhead": share,
        "note": getattr(loop, "note", None),
    }
