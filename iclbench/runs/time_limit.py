"""A limit to the time that a stranger's record may take: it may ask for ten million steps."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..api.errors import RecordError

#: How long a stranger's record or dataset may take to be verified, in minutes.
MOST_MINUTES = 30.0
#: Seconds until it is raised again, where a plugin takes the first for a failure of its own.
AGAIN = 5.0


@contextmanager
def time_limit(hint: str = "") -> Iterator[None]:
    """Within the block, raise RecordError, which ends with `hint`, once half an hour is over.

    It interrupts Python, not a single operation of torch. There is no limit on Windows, nor in a
    thread other than the main one, which gets no signals.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not (in_main and hasattr(signal, "setitimer")):
        yield
        return

    is_over = False

    def stop(*_: object) -> None:
        if not is_over:
            raise RecordError(f"verifying it takes more than {MOST_MINUTES:g} minutes{hint}")

    before = signal.signal(signal.SIGALRM, stop)
    started = time.monotonic()
    left, again = signal.setitimer(signal.ITIMER_REAL, 60 * MOST_MINUTES, AGAIN)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
        if left:  # a timer of the caller goes on
            rest = max(left - (time.monotonic() - started), 1e-3)
            signal.setitimer(signal.ITIMER_REAL, rest, again)
