"""Sizes of models, as far as they are known."""

from __future__ import annotations

from ..api.record import Record


def known_parameters(record: Record) -> int | None:
    """The number of parameters; None for a language model that is asked, which nobody counted."""
    return None if record.spec.origin == "asked" else record.parameters
