"""Options: how the fields of a spec are written as text, on the command line and in commands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .errors import UsageError

#: The most bytes of a file of arguments.
MOST_BYTES = 2**20

_NEEDS_NO_QUOTES = re.compile(r"[\w./:+@-]+", re.ASCII)


@dataclass(frozen=True)
class Option:
    """The option of one field: a single value, validated by the spec.

    `metavar` stands for the value in help texts. `training` marks a field that only training
    uses: it is empty where nothing is trained, and verifying a record leaves it out.
    """

    metavar: str
    training: bool = False

    #: What help texts add to the field's description.
    note: ClassVar[str] = ""
    #: Whether the option may be given several times.
    repeatable: ClassVar[bool] = False
    #: Whether the field holds a list; a sweep doesn't take such a list as an axis.
    is_list: ClassVar[bool] = False

    def read(self, texts: Sequence[str], option: str) -> Any:
        """The field's value from the texts given for `option`; raises UsageError naming it."""
        return texts[-1]

    def write(self, value: Any) -> list[str]:
        """The texts that `read` turns into `value`, one for each time the option is given."""
        return [] if value is None else [str(value)]


class Names(Option):
    """Names separated by commas."""

    is_list = True

    def read(self, texts: Sequence[str], option: str) -> tuple[str, ...]:
        """The names."""
        return tuple(parse_names(texts[-1]))

    def write(self, value: Sequence[str]) -> list[str]:
        """One text, or none without names."""
        return [",".join(value)] if value else []


class Patterns(Option):
    """One pattern each time the option is given."""

    note = "; repeatable"
    repeatable = is_list = True

    def read(self, texts: Sequence[str], option: str) -> tuple[str, ...]:
        """The patterns, as given."""
        return tuple(texts)

    def write(self, value: Sequence[str]) -> list[str]:
        """A text for each pattern."""
        return list(value)


@dataclass(frozen=True)
class Arguments(Option):
    """A dictionary as `key=value` pairs; see `parse_arguments`."""

    metavar: str = "K=V,…"

    note = ", or @file.toml; repeatable"
    repeatable = True

    def read(self, texts: Sequence[str], option: str) -> dict[str, Any]:
        """The merged dictionary."""
        return parse_arguments(texts, option)

    def write(self, value: Mapping[str, Any]) -> list[str]:
        """One text, or none for an empty dictionary."""
        return [",".join(f"{k}={_argument(v)}" for k, v in value.items())] if value else []


class Seeds(Option):
    """A number of seeds, or a list of them; see `parse_seeds`."""

    is_list = True

    def read(self, texts: Sequence[str], option: str) -> int | tuple[int, ...]:
        """The number or the list; the spec turns a number into seeds."""
        return parse_seeds(texts[-1])

    def write(self, value: Sequence[int]) -> list[str]:
        """`5` for seeds 0…4, otherwise a list; the trailing comma tells `7,` from 7 seeds."""
        counted = list(value) == list(range(len(value)))
        return [str(len(value)) if counted else ",".join(map(str, value)) + ","]


def parse_names(text: str) -> list[str]:
    """The names in a text like `a, b`."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_arguments(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Merge `k=v,k2=v2` texts and `@file.toml` or `@file.json` into one dictionary.

    Values are read as JSON, or else as text. Commas inside brackets or quotes don't split, and a
    value may contain `=`. What is given as text replaces what a file before it says. Raises
    UsageError, also for two values of one key, and for a bracket or quote that nothing closes.
    """
    merged: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            merged.update(_read_file(Path(text[1:]), option))
            continue
        for part in _split(text, option):
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"{option}: {part!r} is not of the form key=value")
            name, read = key.strip(), _json_or_text(value.strip())
            # As text: NaN is not equal to itself, and True is to 1.
            if name in given and repr(given[name]) != repr(read):
                raise UsageError(f"{option}: {name} is given twice, as {given[name]} and {read}")
            given[name] = merged[name] = read
    return merged


def parse_seeds(text: str) -> int | tuple[int, ...]:
    """`5` is the number of seeds 0…4; `3,7` or `[7]` lists them. Raises UsageError."""
    stripped = text.strip()
    listed = stripped[1:-1] if stripped.startswith("[") and stripped.endswith("]") else stripped
    try:
        if stripped.isdigit():
            return int(stripped)
        return tuple(int(part) for part in listed.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--seeds: {text!r} is neither a number nor a list like 3,7") from None


def _split(text: str, option: str) -> list[str]:
    """Split at commas that are neither quoted nor inside brackets; `option` is for errors."""
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
    if depth or quoted:
        # The commas after it would be part of the value.
        raise UsageError(f"{option}: in {text!r}, a bracket or a quote lacks its other half")
    return [part for part in [*parts, text[start:]] if part.strip()]


def _read_file(path: Path, option: str) -> dict[str, Any]:
    try:
        # Reading a pipe or a device might never end.
        if path.exists() and not path.is_file():
            raise UsageError(f"{option}: {path} is not a regular file")
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{option}: {path} has more than {MOST_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{option}: {path} is nested too deeply") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option}: {path}: {reason}") from None
    if not isinstance(content, dict):
        raise UsageError(f"{option}: {path} must hold a table of arguments")
    return content


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _argument(value: Any) -> str:
    # Text that would read back as a number, or that holds commas or spaces, is quoted.
    plain = isinstance(value, str) and _NEEDS_NO_QUOTES.fullmatch(value)
    return str(value) if plain and _json_or_text(value) == value else json.dumps(value)
