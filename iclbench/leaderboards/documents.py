"""Reading the TOML files of a folder of leaderboards, and those that describe plugins."""

from __future__ import annotations

from pathlib import Path

from ..api.config import ConfigT, parse_config
from ..files import read_toml


def read_document(path: Path, config: type[ConfigT]) -> ConfigT:
    """The content of a TOML file; the defaults of `config` if there is no such file.

    Raises UsageError with the path and the reason for a file that is not valid.
    """
    return parse_config(config, read_toml(path), str(path)) if path.exists() else config()
