"""The errors that iclbench raises deliberately. The command line prints each as one line."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable
from typing import TypeGuard

from .names import visible


class IclbenchError(Exception):
    """Base class of every deliberate error. The command line exits with `exit_code`."""

    exit_code = 1


class UsageError(IclbenchError):
    """The request can't be met: an unknown name, a bad value, a missing device."""

    exit_code = 2


class PluginError(UsageError):
    """A plugin can't be loaded, or two plugins provide the same name."""


class RecordError(UsageError):
    """A record or checkpoint is truncated, edited, or unsuitable."""


class CheckpointError(RecordError):
    """A training can't be continued now.

    Its checkpoint is damaged, or of another run or code; or another process is training.
    """


class UnsupportedError(UsageError):
    """The model can't do the task, whatever its weights."""


class RunError(IclbenchError):
    """A run failed after it was accepted."""


#: What a plugin's code may raise where its failure must stop nothing else. A plugin that calls
#: `sys.exit` must not end the process with its own exit code.
PLUGIN_FAILURES = (Exception, SystemExit)


class Interrupted(KeyboardInterrupt):
    """SIGINT or SIGTERM ended the work; the message says what was saved.

    Not an `Exception`, so that nothing takes it for a failure and goes on.
    """

    def __init__(self, signal_number: int, message: str = "") -> None:
        super().__init__(signal_number, message)
        self.signal_number, self.message = signal_number, message

    def __str__(self) -> str:
        return self.message

    @property
    def exit_code(self) -> int:
        """The exit code of a program that the signal ended, as shells give it."""
        return 128 + self.signal_number


#: The most names that `unknown` lists.
LISTED = 24


def unknown(kind: str, name: str, known: Iterable[str], otherwise: str = "") -> UsageError:
    """The error for an unknown name, with the nearest known ones.

    `otherwise` is said of a name that none is near to, or hardly.
    """
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    # Names that share a beginning are all alike; one that is much nearer is what was meant.
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.9)
    near = close or near
    if near:
        hint = "did you mean " + " or ".join(repr(n) for n in near) + "?"
    else:
        more = f", … ({len(names)} in all)" if len(names) > LISTED else ""
        hint = f"known: {', '.join(names[:LISTED]) or 'none'}{more}"
    if otherwise and not close:
        hint += f"{' ' if near else '; '}{otherwise}"
    return UsageError(f"unknown {kind} {name!r}; {hint}")


def given_reason(reason: object, owner: str) -> str | None:
    """What a plugin gave as the reason why it doesn't support something; None: it does.

    Raises PluginError for anything else, such as True.
    """
    if reason is None or isinstance(reason, str):
        return reason
    raise PluginError(f"{owner} gives {visible(repr(reason), 100)}, not None or a reason as text")


#: The most characters of a message that `reason_of` shows.
LONGEST_REASON = 1000


def reason_of(error: BaseException) -> str:
    """Why something failed: the message on one line, with the type unless the error is deliberate.

    `first_line` is shorter, for remarks about what goes on without it.
    """
    text = " ".join(_message(error).split())[:LONGEST_REASON]
    if text and isinstance(error, IclbenchError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # a plugin's error may fail at that too
        return ""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        details = [(".".join(map(str, d["loc"])), d["msg"]) for d in error.errors()]
        return "; ".join(": ".join(filter(None, detail)) for detail in details)
    # How torch says that a CPU's memory is short.
    asked = re.search(r"DefaultCPUAllocator: .* allocate (\d+) bytes", text)
    return f"not enough memory for another {int(asked[1]) / 1e9:.3g} GB" if asked else text


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short: on a CPU, and in CUDA's libraries, torch has no type for that."""
    short_of = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    words = (
        "DefaultCPUAllocator: ", "CUDA error: out of memory", "_ALLOC_FAILED", "ALLOCATION_FAILED",
    )  # fmt: skip
    return short_of or any(word in str(error) for word in words)


def is_no_room(error: BaseException) -> TypeGuard[OSError]:
    """Whether a disk is full or fails, or a quota or a file's largest size is reached."""
    codes = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
    return isinstance(error, OSError) and error.errno in codes


def problem_with(path: object, error: BaseException) -> str:
    """What is wrong with a record or another file, in one line that names its path."""
    shown = visible(str(path), 300)
    reason = reason_of(error)
    if isinstance(error, OSError) and error.strerror:
        reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    reason = visible(reason, LONGEST_REASON)
    return reason if shown in reason else f"{shown}: {reason}"


#: The most characters of a message that `first_line` shows.
SHOWN = 160


def first_line(error: BaseException) -> str:
    """An error's type and the first line of its message; of a long one, the whole sentences."""
    line = next(iter(_message(error).strip().splitlines()), "")
    if len(line) > SHOWN:
        sentences = line[:SHOWN].rpartition(". ")[0]
        line = f"{sentences}." if sentences else line[: SHOWN - 1] + "…"
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
