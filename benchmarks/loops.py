"""The loops of a configuration, one process each.

Separate processes keep memory, allocator caches and process settings from leaking between loops.
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

from iclbench import full_precision
from iclbench.training.threads import one_thread

from .configurations import CONFIGURATIONS, Configuration
from .engine import EngineLoop, initial
from .reference import PlainLoop, reference_module
from .timing import Clock, Loop, operations, peak_memory, stage_times

REFERENCES = {"gpt2": "GPT2Model loop", "conv1d": "Conv1d loop"}

#: Fork, if possible, from a server that has imported torch without using it.
PROCESSES: Any = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
PROCESSES.set_forkserver_preload(["benchmarks.loops", "transformers.models.gpt2"])


def makers(configuration: Configuration, device: str) -> dict[str, Callable[[], Loop]]:
    """Loop factories by name: the field's, a plain one on iclbench's module, the engine's."""
    factories: dict[str, Callable[[], Loop]] = {}
    if configuration.reference != "none":
        name = REFERENCES[configuration.reference]

        def reference() -> Loop:
            task, _ = initial(configuration)
            module = reference_module(configuration, task)
            assert module is not None
            return PlainLoop(name, module, task, configuration.batch, device)

        factories[name] = reference

    def plain() -> Loop:
        task, module = initial(configuration)
        return PlainLoop("plain loop", module, task, configuration.batch, device)

    factories["plain loop"] = plain
    for count in configuration.replicas_cpu if device == "cpu" else configuration.replicas:
        factories[f"iclbench, R = {count}"] = partial(EngineLoop, configuration, count, device)
    for count in configuration.replicas_compiled if device != "cpu" else ():
        factories[f"iclbench, compiled, R = {count}"] = partial(
            EngineLoop, configuration, count, device, engine="compiled"
        )
    return factories


class Worker:
    """A loop in its own process."""

    def __init__(self, configuration: Configuration, name: str, device: str) -> None:
        self.name = name
        self._pipe, end = PROCESSES.Pipe()
        arguments = (configuration.name, name, device, torch.get_num_threads())
        self._process = PROCESSES.Process(target=serve, args=(end, *arguments), daemon=True)
        self._process.start()
        end.close()

    def timed(self, steps: int) -> tuple[float, float]:
        """The wall-clock and CPU seconds of this many steps."""
        wall, cpu = self._ask("timed", steps)
        return wall, cpu

    def report(self) -> dict[str, Any]:
        """Replicas, operations, memory, stages, the engine's overhead and its note."""
        report: dict[str, Any] = self._ask("report")
        return report

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _ask(self, *request: Any) -> Any:
        """The worker's answer; exits if the worker has died after printing its error."""
        try:
            self._pipe.send(request)
            return self._pipe.recv()
        except (EOFError, ConnectionError):
            raise SystemExit(f"benchmarks: {self.name} failed, see above") from None


def serve(pipe: Connection, configuration: str, name: str, device: str, threads: int) -> None:
    """Make the loop and answer requests until the pipe is closed; runs in the worker."""
    torch.set_num_threads(threads)
    (chosen,) = (c.on(device) for c in CONFIGURATIONS if c.name == configuration)
    factories = makers(chosen, device)
    with full_precision(torch.float32):
        # Warm up, so that no loop is charged for torch's set-up.
        factories["plain loop"]().advance(1)
        memory = peak_memory(factories[name], chosen.chunk, device)
        loop = factories[name]()
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
    threads: AbstractContextManager[None] = nullcontext()
    if isinstance(loop, EngineLoop):
        turns = loop.in_turn()
        if loop.training.choice.how.by_threads:
            threads = one_thread()  # as in `Training.advance`
        # A GPU's calls return early, and several threads run calls at the same time.
        if device == "cpu" and torch.get_num_threads() == 1:
            share = loop.overhead(unit * math.ceil(10 / unit))
    with turns:
        count = operations(loop)
    with threads:
        stages = stage_times(loop, 2, device)
    return {
        "replicas": loop.replicas,
        "flops": count,
        "peak_memory": memory,
        "stages": stages,
        "overhead": share,
        "engine": loop.training.engine if isinstance(loop, EngineLoop) else None,
        "note": getattr(loop, "note", None),
    }
