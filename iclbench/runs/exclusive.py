"""One run at a time in a process, and one process at a time for a training.

The default dtype and random generators are the process's. Two processes that train the same models
would write one checkpoint in turn, and each would pay for all of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from ..api.errors import CheckpointError, UsageError
from ..console import report
from ..precision import default_modes

_lock = threading.Lock()


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the process's place for a run, in torch's default modes; restore its generator.

    Raises UsageError where another run has it. Waiting instead would block an observer that starts
    a run within a run forever.
    """
    if not _lock.acquire(blocking=False):
        raise UsageError(
            "this process is in the middle of another run; dtype and random generators belong to "
            "the process, so start this run after it or in a process of its own"
        )
    try:
        with default_modes(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        _lock.release()


def lock_of(checkpoint: Path) -> Path:
    """The lock file of a checkpoint, which a process holds while it trains for it."""
    return checkpoint.with_suffix(".lock")


def is_trained_elsewhere(checkpoint: Path) -> bool:
    """Whether a process holds the checkpoint's lock, which a killed one may have left behind."""
    path = lock_of(checkpoint)
    if not path.exists():
        return False
    try:
        with FileLock(path, blocking=False):
            return False
    except (Timeout, OSError, NotImplementedError):
        return True


@contextmanager
def alone(checkpoint: Path, work: str = "training this run") -> Iterator[None]:
    """Be the only process that trains the models of this checkpoint.

    Raises CheckpointError beside another, with what it does, `work`. The lock goes with the
    process, however that ends.
    """
    path = lock_of(checkpoint)
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise CheckpointError(
            f"another process is {work}, see {path}; wait for it, or choose another "
            "folder with --out"
        ) from None
    except (OSError, NotImplementedError) as error:
        report(f"{path} can't be locked ({error}); don't start this run twice at once")
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # Windows keeps an open file
                path.unlink()
            lock.release()
            with suppress(OSError):  # it holds checkpoints
                path.parent.rmdir()
