"""Devices: the device of a run, and the environment that a record names.

`python -m iclbench.devices` prints the versions of Python and torch, and torch's build.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import torch

from .api.errors import UsageError
from .api.names import visible
from .api.record import Environment

#: The numbers of glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3


def keep_freed_memory() -> None:
    """Have the C library keep up to 1 GiB that a step frees for the next, where it is glibc.

    By its own rule it may return the end of the heap to the system after every step and take it
    back page by page: up to a quarter of a small model's step. It holds for the whole process.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 32 << 20)  # its largest value, which its own rule tends to
        mallopt(M_TRIM_THRESHOLD, 1 << 30)
        mallopt(M_TOP_PAD, 64 << 20)


def free_memory() -> None:
    """Free what is held by objects that refer to each other alone, on a GPU for any use."""
    gc.collect()
    torch.cuda.empty_cache()


def gpu_is_usable() -> bool:
    """Whether this process can still use its GPU: after some errors of a kernel, it never can."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def environment(device: torch.device, packages: Sequence[str] = ()) -> Environment:
    """Return what a record says about the machine and its libraries.

    `packages` are further distributions that a run has used.
    """
    cuda = device.type == "cuda"
    others = ("iclbench", "numpy", "scipy", *(name for name in packages if name != "torch"))
    return Environment(
        device=visible(torch.cuda.get_device_name(device), 500) if cuda else "cpu",
        processor=f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        cpu=cpu_name(),
        platform=visible(platform.platform(), 500),
        threads=torch.get_num_threads(),
        versions={
            "python": platform.python_version(),
            # The registry's CUDA build is 2.13.0 by its metadata and 2.13.0+cu130 by itself.
            "torch": str(torch.__version__),
            **{name: metadata.version(name) for name in others},
        },
    )


@functools.cache
def cpu_name() -> str | None:
    """The CPU's name, such as AMD EPYC 9R14; None where the system does not say."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        if names and names[0]:
            return visible(names[0], 200)
    # On Linux this may be empty or the architecture, which `processor` has.
    name = platform.processor()
    return visible(name, 200) if name and name != platform.machine() else None


def machine_memory() -> int:
    """The bytes of this machine's memory; 64 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**36


def find_device(name: str, *, make_current: bool = True) -> torch.device:
    """Return the device of that name, for `auto` a GPU if there is one; raises UsageError.

    A GPU with a number becomes torch's current one, on which kernels of packages run; not with
    `make_current=False`, for a second model beside a run's.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"{name!r} is not a device; use auto, cpu or cuda[:N]") from None
    if device.type not in {"cpu", "cuda"} or (device.type == "cpu" and device.index is not None):
        raise UsageError(f"device {name!r} is not supported; use auto, cpu or cuda[:N]")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"device {name!r} does not exist ({torch.cuda.device_count()} GPUs)")
    if make_current and device.index is not None and device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def require_devices(name: str, workers: int, *, remote: bool = False) -> None:
    """Raise UsageError for a device that so many workers can't use.

    The devices of this machine don't matter to workers that are `remote`.
    """
    # Each worker sees only its own GPU, so a number would name none or always the same one.
    if workers > 1 and ":" in name:
        raise UsageError(
            f"--device {name}: several workers use one GPU each; give --device cuda, and choose "
            "GPUs with CUDA_VISIBLE_DEVICES"
        )
    if not remote:
        find_device(name)


def torch_build() -> str:
    """The versions of Python and torch in one line, with the build of torch."""
    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    return f"python {platform.python_version()}, torch {torch.__version__} ({cuda})"


if __name__ == "__main__":
    print(torch_build())
