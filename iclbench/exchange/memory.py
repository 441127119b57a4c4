"""A bound on the memory that reading a stranger's file may take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Where Linux says how many pages of memory the process has.
PAGES = Path("/proc/self/statm")


@contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """Within the block, a MemoryError ends what takes more than `more` bytes beyond those in use.

    Other systems than Linux have no such bound.
    """
    try:
        import resource

        pages = int(PAGES.read_text("ascii").split()[0])
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = pages * os.sysconf("SC_PAGE_SIZE") + more
    known = [limit for limit in (bound, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
