"""What pages say of a further metric: its summary and documentation, from its plugin."""

from __future__ import annotations

import inspect

from ...api.errors import IclbenchError
from ...api.metric import Metric
from ...console import capitalized
from ...plugins import host
from .figure import View


def metric_about(name: str) -> View:
    """A metric's title and the blocks of its documentation, each of a text or of list items.

    The name alone for a metric whose plugin is not installed.
    """
    try:
        _, entry = host().provider("metric", name)
        target: type[Metric] = host().load("metric", name, Metric)
    except IclbenchError:
        return {"title": name, "blocks": []}
    documentation = inspect.cleandoc(target.__doc__ or "")
    return {
        "title": capitalized(entry.summary) or name,
        "blocks": [_block(part) for part in documentation.split("\n\n") if part.strip()],
    }


def _block(part: str) -> View:
    if not part.startswith("- "):
        return {"text": _on_one_line(part), "items": []}
    return {"text": "", "items": [_on_one_line(item) for item in part[2:].split("\n- ")]}


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
