"""The minus sign of numbers on pages."""

from __future__ import annotations

import re

#: A hyphen that is a minus.
_MINUS = re.compile(r"-(?=[\d.∞]|inf)")
#: A hyphen before a number at the beginning of an element's text, or of an interval's upper end.
_HYPHEN = re.compile(r"(>\s*|… )-(?=\d)")


def with_minus(number: str) -> str:
    """The written number with a true minus, also in its exponent; hyphens of words stay."""
    return _MINUS.sub("−", number)


def with_minus_in_page(html: str) -> str:
    """The page with a true minus wherever a negative number is an element's whole or first text."""
    return _HYPHEN.sub(r"\1−", html)
