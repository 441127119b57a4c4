"""The order of records that no sweep gives: by model and settings, with numbers by their size."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...api.record import Record
from ...api.spec import canonical_json

_NUMBER = re.compile(r"((?:(?<![\w.])-)?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def by_settings(records: Iterable[Record]) -> list[Record]:
    """The records by model and its arguments, then by the rest: 2 layers before 10."""
    return sorted(records, key=_settings)


def _settings(record: Record) -> tuple[Any, ...]:
    spec = record.spec
    return spec.model, _natural(spec.model_args), spec.task, _natural(spec.model_dump(mode="json"))


def _natural(content: Any) -> list[tuple[float, str]]:
    """A sort key of JSON: texts and numbers alternate, so that each is compared with its like."""
    parts = enumerate(_NUMBER.split(canonical_json(content)))
    return [(float(part), "") if i % 2 else (0.0, part) for i, part in parts]
