"""One run at a time in a process: the default dtype and random generators are the process's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..api.errors import UsageError

_lock = threading.Lock()


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the process's place for a run; raises UsageError where another run has it.

    Waiting instead would block an observer that starts a run within a run forever.
    """
    if not _lock.acquire(blocking=False):
        raise UsageError(
            "this process is in the middle of another run; dtype and random generators belong to "
            "the process, so start this run after it or in a process of its own"
        )
    try:
        yield
    finally:
        _lock.release()
