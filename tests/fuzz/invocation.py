"""One command line in this process: its exit code, what it printed, how long it took."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

# Nothing is uploaded: the hub is where nobody listens. Read when huggingface_hub is imported.
os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"

#: What is printed for an exception that nobody thought of.
UNPLANNED = re.compile(r"ICLBENCH_DEBUG=1|: [A-Z]\w*(Error|Exception|Warning): ")


class HangError(BaseException):
    """The time limit of a case; not an Exception, so that nothing handles it."""


@dataclass(frozen=True)
class Outcome:
    """What a command line did."""

    words: list[str]
    code: int
    out: str
    err: str
    seconds: float
    #: Empty, or the traceback that a user would have seen.
    escaped: str = ""

    def problem(self) -> str | None:
        """What no input may cause: a traceback, a hang, or an exit code without a reason."""
        if self.escaped:
            return self.escaped
        if "Traceback (most recent call last)" in self.out + self.err:
            return self.err
        if self.code not in {0, 1, 2}:
            return f"exit code {self.code}"
        if self.code and not self.err.strip() and "do not hold" not in self.out:
            return f"exit code {self.code} without a reason"
        return None

    @property
    def unplanned(self) -> bool:
        """Whether the reason is an exception that nobody thought of."""
        return UNPLANNED.search(self.err) is not None


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise HangError in the block after so many seconds."""

    def end(number: int, frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def invoke(words: list[str], limit: int) -> Outcome:
    """Run `iclbench WORDS` in this process."""
    from iclbench.cli import main

    kept = sys.argv, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code, escaped, start = 0, "", time.perf_counter()
    sys.argv, sys.stdout, sys.stderr = ["iclbench", *words], out, err
    try:
        with time_limit(limit), warnings.catch_warnings():
            warnings.simplefilter("default")
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        escaped = traceback.format_exc()
    finally:
        sys.argv, sys.stdout, sys.stderr = kept
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))  # type: ignore[attr-defined]
    return Outcome(words, code, *texts, time.perf_counter() - start, escaped)


def listing(folder: Path, without: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, size and time of every file below a folder, except below `without`."""
    result = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_relative_to(without):
            status = path.lstat()
            result[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return result
