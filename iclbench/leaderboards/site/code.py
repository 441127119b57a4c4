"""Names between backticks, as notes in TOML files write them, as HTML."""

from __future__ import annotations

import re

from markupsafe import Markup, escape


def with_code(text: str) -> Markup:
    """The escaped text, with what is between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
