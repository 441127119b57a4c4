"""StudyTable: what a sweep's own table shows; `display.study` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field, field_validator

from ..api.config import Config
from .fields import Names


class StudyTable(Config):
    """The columns of a table with one row per record, and one for the floor they share."""

    metrics: Names = Field(description="patterns of metrics, in the order of their columns")
    statistic: Literal["mean", "median"] = "mean"
    counts: dict[str, Names] = Field(
        {}, description="extra columns: the total size of the parameters that match the patterns"
    )

    @field_validator("metrics")
    @classmethod
    def _some(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if not patterns:
            raise ValueError("at least one pattern is needed")
        return patterns

    def unmatched(self, known: Iterable[str]) -> list[str]:
        """The patterns that none of the known metrics matches."""
        names = list(known)
        return [p for p in self.metrics if not any(fnmatchcase(name, p) for name in names)]
