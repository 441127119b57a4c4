"""What a record or a request may name and write: plain names, visible text, bounded numbers.

Names become parts of paths, and texts are shown in terminals, tables and pages. All of iclbench
asks these functions, so that no other place decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeGuard

from annotated_types import MaxLen

#: The most characters of a name, and of any other text.
MOST_NAME, MOST_TEXT = 100, 20_000
#: The most levels of lists and tables inside each other.
MOST_DEPTH = 50
#: Integers are smaller than this: other programs read them as 64 bits.
INTEGER_LIMIT = 2**63

#: What Windows takes for a device, also with an extension.
_DEVICES = frozenset({"con", "prn", "aux", "nul"}) | {
    f"{kind}{number}" for kind in ("com", "lpt") for number in range(1, 10)
}

_ENTRY_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+([.+-][A-Za-z0-9_]+)*")

#: Printable characters that look like none, or that cover others: blank letters of Hangul and
#: Braille, joiners and selectors (but that of emoji), and marks that strike through or enclose.
_HIDDEN = re.compile(
    "[\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0e\U000e0100-\U000e01ef"
    "\u0334-\u0338\u0488\u0489\u20d2-\u20f0]"
)

#: A short text that a page shows in one line, such as the name of a device.
Label = Annotated[str, MaxLen(500)]


def is_entry_name(text: str) -> bool:
    """Whether a text is lower-case words joined by hyphens, such as a model's name."""
    return _ENTRY_NAME.fullmatch(text) is not None


def is_plain_name(text: str) -> bool:
    """Whether a text can name a file: letters, digits, `_`, and single `.`, `+`, `-` between.

    Names that are devices on Windows can't.
    """
    is_device = text.partition(".")[0].lower() in _DEVICES
    return len(text) <= MOST_NAME and _PLAIN_NAME.fullmatch(text) is not None and not is_device


def is_visible(text: str) -> bool:
    """Whether a page or a terminal shows all of a text as characters in one line.

    It does not show line breaks, control characters, marks that reverse the direction of writing,
    halves of characters, letters that are blank, and marks that strike through or enclose others.
    """
    return text.isprintable() and (text.isascii() or _HIDDEN.search(text) is None)


def visible(text: str, most: int = MOST_TEXT) -> str:
    """The text with `?` for all that is not visible, and at most `most` long."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return shown if is_visible(shown) else "".join(c if is_visible(c) else "?" for c in shown)


def shown(value: Any) -> str:
    """The value as Python writes it, in one short line."""
    try:
        return visible(repr(value), 200)
    except (ValueError, RecursionError):  # an integer of thousands of digits; deep nesting
        return f"a {type(value).__name__} that is too large to show"


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a number, finite or not; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number; True and False are none."""
    return is_number(value) and math.isfinite(value)


def without_nonfinite(content: Any) -> Any:
    """The content with None for numbers that JSON lacks."""
    if isinstance(content, dict):
        return {key: without_nonfinite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_nonfinite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def content_problem(content: Any) -> str | None:
    """Why this content can't be part of a record, with the path to it; None if it can.

    It must be as JSON has it, nested at most MOST_DEPTH deep, with visible texts and with numbers
    that are finite and fit 64 bits.
    """
    if _is_fine(content):
        return None
    # Not recursive: content that is nested too deeply must be noticed, not run out of stack.
    waiting: list[tuple[tuple[str, ...], Any]] = [((), content)]
    while waiting:
        path, value = waiting.pop()
        problem = None
        if isinstance(value, dict | list | tuple):
            inner = list(_inside(value))
            problem = next((p for key, _ in inner if (p := _problem(key))), None)
            if len(path) >= MOST_DEPTH:
                problem = f"nested more than {MOST_DEPTH} deep"
            waiting += [((*path, str(key)), item) for key, item in inner]
        else:
            problem = _problem(value)
        if problem is not None:
            where = visible(".".join(path), MOST_NAME)
            return f"{where}: {problem}" if where else problem
    return None


def _is_fine(content: Any) -> bool:
    """Whether content is certainly as `content_problem` wants it; most is, and this is faster."""
    level = [content]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                inner += value
                inner += value.values()
            elif kind is list or kind is tuple:
                inner += value
            elif kind is str:
                if len(value) > MOST_TEXT or not is_visible(value):
                    return False
            elif kind is float:
                if not math.isfinite(value):
                    return False
            elif kind is not bool and value is not None and _problem(value) is not None:
                return False
        if not inner:
            return True
        level = inner
    return False


def _inside(value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _problem(value: Any) -> str | None:
    """What is wrong with a text, a number, a boolean or null."""
    if isinstance(value, str):
        if len(value) > MOST_TEXT:
            return f"a text of {len(value):,} characters; at most {MOST_TEXT:,} are allowed"
        return None if is_visible(value) else f"{visible(value, 40)!r} has invisible characters"
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number that is not finite"
    if isinstance(value, int):
        return None if -INTEGER_LIMIT <= value < INTEGER_LIMIT else "an integer over 64 bits"
    return None if value is None else f"a {type(value).__name__} has no place in JSON"
