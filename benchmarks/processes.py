"""Commands that end when their time is up."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from . import ROOT

#: Seconds that a command gets to save what it has.
SAVING = 30.0


def ended_in_time(words: Sequence[str], seconds: float, **files: Any) -> int | None:
    """The exit code of a command; None where it was ended after so many seconds.

    With it end the processes that it has started: they would hold the device's memory, and disturb
    what the next call times.
    """
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True, **files)
    try:
        return process.wait(timeout=max(1.0, seconds))
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise


def stopped_in_time(
    words: Sequence[str], seconds: float, by: signal.Signals = signal.SIGTERM, **files: Any
) -> tuple[int, bool]:
    """The exit code of a command, and whether it got the signal, after so many seconds."""
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True, **files)
    try:
        return process.wait(timeout=max(1.0, seconds)), False
    except BaseException as error:
        process.send_signal(by)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=SAVING)
        finally:  # also at a second Ctrl-C
            with suppress(ProcessLookupError):  # what it has started, see `ended_in_time`
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return code, True
        raise
