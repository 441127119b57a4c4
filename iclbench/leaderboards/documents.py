"""Reading the TOML files of a folder of leaderboards, and those that describe plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..api.config import ConfigT, parse_config
from ..api.errors import UsageError
from ..api.names import is_visible, visible
from ..files import read_toml


def read_document(path: Path, config: type[ConfigT]) -> ConfigT:
    """The content of a TOML file; the defaults of `config` if there is no such file.

    Raises UsageError with the path and the reason for a file that is not valid, or that has texts
    with line breaks or other invisible characters: pages and terminals show them as they are.
    """
    if not path.exists():
        return config()
    content = read_toml(path)
    for text in _texts(content):
        if not is_visible(text):
            raise UsageError(f"{path}: {visible(text, 60)!r} has invisible characters")
    return parse_config(config, content, str(path))


def _texts(content: Any) -> Iterator[str]:
    """The keys and the texts of a document."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for item in content:
            yield from _texts(item)
        for item in content.values() if isinstance(content, dict) else ():
            yield from _texts(item)
