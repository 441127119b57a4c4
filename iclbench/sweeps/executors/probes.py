"""Jobs that show how an executor runs them, for `check_executor`. They import no torch."""

from __future__ import annotations

import os
import platform
import signal
import time
from pathlib import Path
from typing import Any

from ...training.interruption import interruptible


def this_process() -> list[Any]:
    """The machine and number of the process that asks, as JSON."""
    return [platform.node(), os.getpid()]


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Do as the job says: wait, fail or die; then tell its value, and where and when it ran."""
    began = time.time()
    time.sleep(job["seconds"])
    if job["ends_by"] == "error":
        raise LookupError("as the job says")
    if job["ends_by"] == "death" and job["caller"] != this_process():
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    ended = time.time()
    return {"value": job["value"], "process": this_process(), "began": began, "ended": ended}


def wait_for_signal(job: dict[str, Any]) -> None:
    """Leave a file at the start, and another at an interruption. The first job returns at once."""
    folder = Path(job["folder"])
    try:
        (folder / "first").open("x").close()
    except FileExistsError:
        with interruptible():
            try:
                (folder / f"{job['index']}.started").touch()
                time.sleep(job["seconds"])
            except KeyboardInterrupt:
                (folder / f"{job['index']}.saved").touch()
                raise
