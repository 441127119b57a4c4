"""A pytest plugin that runs tests on `pretended_cuda`: `pytest -p pretending -m gpu`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pretended_guard  # noqa: F401  # before torch, which asks for devices once
import pytest
import torch
from pretended_cuda import Device, Pretending, capture
from pretended_graph import Graph


class Stream:
    """A stream of the device, which does everything at once."""

    def __init__(self, device: Any = None) -> None:
        pass

    def wait_stream(self, other: Stream) -> None:
        pass


class Event:
    """A point in time."""

    def __init__(self, **options: Any) -> None:
        self.seconds = 0.0

    def record(self, stream: Stream | None = None) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, later: Event) -> float:
        return 1000 * (later.seconds - self.seconds)


MAIN = Stream()

#: What `torch.cuda` answers.
ANSWERS: dict[str, Any] = {
    "_lazy_init": lambda: None,
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "get_device_name": lambda device=None: "pretended",
    "current_device": lambda: 0,
    "set_device": lambda device: None,
    "synchronize": lambda device=None: None,
    "empty_cache": lambda: None,
    "device": contextlib.nullcontext,
    "manual_seed": lambda seed: None,
    "manual_seed_all": lambda seed: None,
    "get_rng_state": lambda device=None: torch.get_rng_state(),
    "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
    "mem_get_info": lambda device=None: (8 << 30, 16 << 30),
    "memory_allocated": lambda device=None: 0,
    "max_memory_allocated": lambda device=None: 0,
    "reset_peak_memory_stats": lambda device=None: None,
    "Event": Event,
    "Stream": Stream,
    "current_stream": lambda device=None: MAIN,
    "set_stream": lambda stream: None,
    "stream": lambda stream: contextlib.nullcontext(),
    "CUDAGraph": Graph,
    "graph": capture,
    "is_current_stream_capturing": lambda: Device.graph is not None,
    "get_sync_debug_mode": lambda: Device.debug_mode,
    "set_sync_debug_mode": lambda mode: setattr(Device, "debug_mode", mode),
}


def tensor(data: Any, *, pin_memory: bool = False, make: Any = torch.tensor, **options: Any) -> Any:
    """As `torch.tensor`: memory that is said to be pinned, where torch would ask a real device."""
    made = make(data, **options)
    made.is_said_to_be_pinned = pin_memory
    return made


@contextlib.contextmanager
def pretended() -> Iterator[None]:
    """Have torch, in this thread, find one CUDA device."""
    with contextlib.ExitStack() as stack:
        for name, answer in ANSWERS.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, answer))
        stack.enter_context(mock.patch.object(torch, "tensor", tensor))
        # `torch.tensor(…, device="cuda")` then gets to the mode before it gets to its device.
        stack.callback(torch._C._set_only_lift_cpu_tensors, torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)
        # `module.to("cuda")` then makes parameters anew: one can't change its class.
        future = torch.__future__
        before = future.get_overwrite_module_params_on_conversion()
        stack.callback(future.set_overwrite_module_params_on_conversion, before)
        future.set_overwrite_module_params_on_conversion(True)
        stack.enter_context(Pretending())
        yield


@pytest.fixture(autouse=True)
def _pretended_device() -> Iterator[None]:
    with pretended():
        yield
