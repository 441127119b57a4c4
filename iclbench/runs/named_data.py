"""Data that a record names in its arguments: files, folders, and datasets of the hub.

Verifying a record builds its task and model from its arguments, and so reads what they name. A
stranger's record could name any file of the verifier's machine, or make it download.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..api.errors import RecordError
from ..api.names import visible
from ..api.record import Record
from ..api.spec import RunSpec

#: Arguments that are addresses, which nothing reads to verify a record.
ADDRESSES = frozenset({"base_url"})


def require_shipped_data(record: Record, hint: str = "") -> None:
    """Raise RecordError for a run that names a file, a folder or a dataset of the hub.

    `hint` ends the message.
    """
    request = RunSpec.from_command(record.command)
    for group in (request.task_args, request.model_args, request.weights_args, request.grader_args):
        for name, value in group.items():
            named = [text for text in _texts(value) if name not in ADDRESSES and _names_data(text)]
            if named:
                shown = visible(named[0], 100)
                raise RecordError(f"{name}={shown} names data that no package ships{hint}")


def _texts(value: Any) -> Iterator[str]:
    """The texts in an argument, each part of a list such as `a+b` alone."""
    if isinstance(value, str):
        yield from value.split("+")
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in _texts(item))
    elif isinstance(value, list | tuple):
        yield from (text for item in value for text in _texts(item))


def _names_data(text: str) -> bool:
    if not text:  # as a path it would be the current folder
        return False
    # Unlike Path.exists, this is False for a text that is too long for a file's name.
    return text.startswith((".", "~")) or "/" in text or "\\" in text or os.path.exists(text)
