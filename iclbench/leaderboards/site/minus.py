"""The minus sign of numbers on pages."""

from __future__ import annotations


def with_minus(number: str) -> str:
    """The written number with a true minus, also in its exponent."""
    return number.replace("-", "−")
