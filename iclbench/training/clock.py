"""Clock: the time that a part of the work takes, of the cores, the wall and the device."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Clock:
    """Seconds within its blocks, added up: CPU time of the process, wall time, and device time.

    CPU time is that of all threads, user and system. On a GPU the device is taken by the block from
    its start to its end; `device` is None on a CPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.core = self.wall = 0.0

    @property
    def device(self) -> float | None:
        """Seconds of the GPU."""
        return self.wall if self._device.type == "cuda" else None

    @property
    def counted(self) -> float:
        """The seconds that a budget counts: of the device on a GPU, of the cores elsewhere."""
        return self.core if self.device is None else self.device

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of the block."""
        self._wait()
        core, wall = time.process_time(), time.perf_counter()
        try:
            yield
            self._wait()
        finally:
            self.core += time.process_time() - core
            self.wall += time.perf_counter() - wall

    def state(self) -> list[float]:
        """Return JSON values from which `load_state` continues."""
        return [self.core, self.wall]

    def load_state(self, values: list[float]) -> None:
        """Take up a state."""
        self.core, self.wall = values

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
