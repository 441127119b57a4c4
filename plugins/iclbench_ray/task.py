"""What a Ray task runs. Importing this imports neither Ray nor torch."""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

from iclbench import interruptible, report

#: How often a task looks whether it is to stop.
SECONDS = 0.5


def answer(function: str, job: str, stop: str, folder: str) -> str:
    """The outcome of a job as JSON: `result`, or `error` if the function raised.

    `stop` is a path; once there is a file, the job is interrupted as by SIGTERM. Another SIGTERM
    comes from whoever ends this machine: the process ends too, after its checkpoint, so that Ray
    runs the task again elsewhere. A job may name files relative to `folder`.
    """
    with suppress(OSError):  # a machine that lacks the folder may need nothing of it
        os.chdir(folder)
    # Ray's own handlers would be left in place.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        # Several signals may come; the first one is enough.
        with interruptible(second=lambda *_: None):
            threading.Thread(target=_stop_with, args=(Path(stop),), daemon=True).start()
            return json.dumps(_answer(function, job))
    except KeyboardInterrupt as interruption:
        report(str(interruption) or "interrupted")
        if Path(stop).exists():
            return json.dumps({"error": "interrupted"})
        os._exit(128 + signal.SIGTERM)


def _answer(function: str, job: str) -> dict[str, object]:
    try:
        return {"result": pkgutil.resolve_name(function)(json.loads(job))}
    except (Exception, SystemExit) as error:  # a plugin may call sys.exit
        return {"error": f"{type(error).__name__}: {error}"}


def _stop_with(stop: Path) -> None:
    # `ray.cancel` does not wake a process that sleeps or computes in C, and a signal does not reach
    # other machines.
    while not stop.exists():
        time.sleep(SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
