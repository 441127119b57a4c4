"""Parsing of `key=value` arguments and of seeds."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..api.errors import UsageError
from ..api.spec import _value


def parse_arguments(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Merge `k=v,k2=v2` texts and `@file.toml` or `@file.json` into one dictionary.

    Values are read as JSON and are text otherwise; commas inside brackets or quotes don't split,
    and a value may hold `=`. Raises UsageError.
    """
    merged: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            merged.update(_read_file(Path(text[1:]), option))
            continue
        for part in _split(text):
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"{option}: {part!r} is not of the form key=value")
            merged[key.strip()] = _value(value.strip())
    return merged


def parse_seeds(text: str) -> int | tuple[int, ...]:
    """`5` is the number of seeds 0…4; `3,7` or `[7]` names them."""
    try:
        if text.strip().isdigit():
            return int(text)
        return tuple(int(part) for part in text.strip().strip("[]").split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--seeds: {text!r} is neither a number nor a list like 3,7") from None


def _split(text: str) -> list[str]:
    """Split at commas that are neither quoted nor inside brackets."""
    parts, depth, quoted, escaped, start = [], 0, False, False, 0
    for i, character in enumerate(text):
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
        else:
            depth += (character in "[{(") - (character in "]})")
    return [part for part in [*parts, text[start:]] if part.strip()]


def _read_file(path: Path, option: str) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"{option}: {path}: {error}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{option}: {path} must hold a table of arguments")
    return content
