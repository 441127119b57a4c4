"""Interruption: SIGINT and SIGTERM end the work where it can be continued.

Signals belong to the process and reach its main thread alone, so their state is the process's.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..api.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


@dataclass
class _Process:
    """How this process takes signals.

    `next_handlers` replace ours at the first signal; there are none where ours are not installed.
    """

    next_handlers: dict[signal.Signals, Handler] = field(default_factory=dict)
    received: int | None = None
    deferring: bool = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take the first signal."""
        for signal_number, handler in self.next_handlers.items():
            signal.signal(signal_number, handler)
        self.received = number
        if not self.deferring:
            raise Interrupted(number)


_process = _Process()


def ignore(number: int, frame: FrameType | None) -> None:
    """Ignore a signal. Python complains where SIG_IGN meets a signal that is being delivered."""


@contextmanager
def interruptible(second: Handler = None) -> Iterator[None]:
    """Raise Interrupted within the block at the first SIGINT or SIGTERM.

    `second` then handles further signals; None: the handler that was there before. A signal that
    is ignored or has a handler of someone else keeps it. Within such a block, or outside the main
    thread, another one changes nothing.
    """
    if _process.received is not None:
        raise Interrupted(_process.received)  # the first time, something swallowed it
    if _process.next_handlers or not _in_main_thread():
        yield
        return
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    before = {s: h for s in SIGNALS if (h := signal.getsignal(s)) in defaults}
    _process.next_handlers = {s: h if second is None else second for s, h in before.items()}
    for number in before:
        signal.signal(number, _process.handle)
    try:
        yield
    finally:
        if _process.received is None:
            for number, handler in before.items():
                signal.signal(number, handler)
        _process.next_handlers, _process.received = {}, None


@contextmanager
def deferred() -> Iterator[Callable[[], int | None]]:
    """Only note a signal within the block, which raises Interrupted itself where it is ready to.

    The function that the block gets returns the number of the signal, or None.
    """
    with interruptible():
        before = _process.deferring
        _process.deferring |= _in_main_thread()
        try:
            yield lambda: _process.received
        finally:
            _process.deferring = before


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
