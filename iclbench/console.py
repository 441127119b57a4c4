"""Messages on standard error, and standard streams that any text can be written to."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import shlex
import sys
import threading
import traceback
import unicodedata
from collections.abc import Callable
from typing import Any, TextIO

#: What takes lines to show, as `report` does.
Reporter = Callable[[str], None]

#: The longest message, in characters; an argument in it may have a hundred thousand.
LONGEST_LINE = 2000

#: What stands for a character in an encoding that lacks it, beside Unicode's own decompositions.
_PLAIN = str.maketrans(
    {"·": "-", "×": "x", "−": "-", "–": "-", "—": "-", "→": "->", "≤": "<=", "≥": ">=", "±": "+-",
     "“": '"', "”": '"', "‘": "'", "’": "'"}
)  # fmt: skip


def shell_path(path: object) -> str:
    """A path as a shell takes it, and as a command takes it: `-x` would be an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; under some services, and after `>&-`, it is None."""
    return stream is not None and stream.isatty()


def report(line: str) -> None:
    """Print one line on standard error."""
    write_line(f"iclbench: {one_line(line)}")


def show_traceback(error: BaseException) -> None:
    """Print an error's traceback on standard error, if ICLBENCH_DEBUG asks for it."""
    if os.environ.get("ICLBENCH_DEBUG"):
        traceback.print_exception(error)


def write_line(line: str) -> None:
    """Write a line to standard error at once.

    `print` writes the end of a line apart, so that lines of two processes can become one. A line
    that can't be written, to a full disk or a closed pipe, ends no work.
    """
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed
            sys.stderr.write(f"{line}\n")


def one_line(text: str) -> str:
    """Text as one line that a terminal only shows.

    Line breaks become spaces, other control characters escapes, and a long text loses its middle.
    """
    words = " ".join(text.split())
    if len(words) > LONGEST_LINE:
        words = f"{words[: LONGEST_LINE // 2]} … {words[-LONGEST_LINE // 2 :]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)


def counted(number: int, noun: str) -> str:
    """How many there are of what, such as `1 record` or `2,048 prompts`; the noun is regular."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def capitalized(text: str) -> str:
    """The text with a capital first letter; all others stay, unlike with `str.capitalize`."""
    return text[:1].upper() + text[1:]


def prepare_streams() -> None:
    """Make printing safe: a closed stream leads nowhere, and a missing character is replaced."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Otherwise the next file that is opened would be standard output.
            os.open(os.devnull, os.O_RDWR)
    codecs.register_error("iclbench", _replace_character)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="iclbench")


def _replace_character(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks by similar ASCII characters, or else by escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    similar = unicodedata.normalize("NFKD", missing.translate(_PLAIN))
    letters = "".join(c for c in similar if not unicodedata.combining(c))
    return letters.encode("ascii", "backslashreplace").decode("ascii"), error.end


def flush_output() -> None:
    """Write what was printed; raises OSError where that fails, and drops the rest."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            # Python would write it again at its end, and print a traceback.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            raise


class _OutputAsMessages:
    """Sends standard output to standard error while any thread is inside, and C code's too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._output: Any = None
        self._descriptor: int | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._redirect()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()

    def _redirect(self) -> None:
        _flush(sys.stdout)
        self._output, sys.stdout = sys.stdout, sys.stderr
        with contextlib.suppress(OSError):
            self._descriptor = os.dup(1)
            os.dup2(2, 1)

    def _restore(self) -> None:
        # What was written to the original stream meanwhile is still in its buffer, or in C's. numpy
        # and torch import ctypes, so code that prints from C has it; importing it here is slow.
        _flush(self._output)
        if (ctypes := sys.modules.get("ctypes")) is not None:
            with contextlib.suppress(OSError, AttributeError, TypeError):
                ctypes.CDLL(None).fflush(None)
        sys.stdout = self._output
        if self._descriptor is not None:
            os.dup2(self._descriptor, 1)
            os.close(self._descriptor)
            self._descriptor = None


def _flush(stream: TextIO | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


#: A context in which standard output is standard error.
output_as_messages = _OutputAsMessages()
