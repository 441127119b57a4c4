"""Formulas in LaTeX as MathML, which browsers draw without a script or a font of the site."""

from __future__ import annotations

from html import escape

from latex2mathml.converter import convert


def mathml(latex: str) -> str:
    """The formula as HTML; the text itself where it can't be converted, and nothing for none."""
    if not latex:
        return ""
    try:
        return str(convert(latex, display="block"))
    # The converter raises many types for what it does not know.
    except Exception:
        return f"<code>{escape(latex)}</code>"
