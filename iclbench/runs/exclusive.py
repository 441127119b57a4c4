"""One run at a time in a process, and one process at a time for a training.

The default dtype and random generators are the process's. Two processes that train the same models
would write one checkpoint in turn, and each would pay for all of it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from filelock import BaseFileLock, FileLock, Timeout

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
        with _file_lock(path):
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
    lock = _file_lock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
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


def _file_lock(path: Path) -> BaseFileLock:
    """A lock that doesn't wait, and that the system releases when a process is killed."""
    # Later versions make a file in its place where a file system has no locks, which outlives it.
    known = inspect.signature(FileLock).parameters
    strict: dict[str, Any] = {"fallback_to_soft": False} if "fallback_to_soft" in known else {}
    return FileLock(path, timeout=0, **strict)
