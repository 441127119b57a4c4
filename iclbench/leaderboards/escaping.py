"""Escaping the texts of records where a page or a table is written, at the last step.

Records come from strangers. Their texts hold visible characters only (`api/names.py`); these
functions take away what the characters mean in a format. Jinja escapes the pages of the site.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Container, Iterable, Sequence

#: What Markdown gives a meaning to, anywhere in a line.
_MARKDOWN = re.compile(r"([\\`*\[\]|~$])|(?<!\w)(_)|(_)(?!\w)")
#: Programs take cells that begin so for formulas.
_FORMULA = ("=", "+", "-", "@")
#: Intervals, which may begin like formulas, with their marks.
_INTERVAL = re.compile(
    r"-{0} … (-?{0}|not finite)( [†‡~]+|, \d+ not finite)?".format(r"[\d.]+(e[+-]?\d+)?")
)

#: What GitHub makes links and mentions of, without any mark around it.
_LINKS = {"://": "&#58;//", "www.": "www&#46;", "@": "&#64;"}


def markdown(text: str) -> str:
    """Text within a line, a heading or a cell of a table in Markdown; nothing becomes a link."""
    escaped = html.escape(_MARKDOWN.sub(r"\\\g<0>", text), quote=False)
    for written, shown in _LINKS.items():
        escaped = escaped.replace(written, shown)
    return escaped


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Container[int] = ()
) -> str:
    """A table in GitHub's Markdown, of escaped texts; columns `right` are aligned to the right."""
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    lines = [[markdown(cell) for cell in line] for line in (header, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def csv_cell(value: object) -> object:
    """A cell of a CSV file; `'` before a text that a spreadsheet would run as a formula."""
    if not isinstance(value, str) or _INTERVAL.fullmatch(value):
        return value
    # Some programs read wide forms of these characters as the plain ones.
    first = unicodedata.normalize("NFKC", value[:1])
    return f"'{value}" if first.startswith(_FORMULA) else value


def plotly(text: str) -> str:
    """Text of a figure by Plotly, which reads some of HTML's elements."""
    return html.escape(text, quote=False)
