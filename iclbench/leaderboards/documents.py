"""Reading the TOML files of a folder of leaderboards, and those that describe plugins."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ..api.config import ConfigT, parse_config
from ..api.errors import UsageError


def read_document(path: Path, config: type[ConfigT]) -> ConfigT:
    """The content of a TOML file; the defaults of `config` if there is no such file.

    Raises UsageError with the path and the reason for a file that is not valid.
    """
    if not path.exists():
        return config()
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    return parse_config(config, content, str(path))
