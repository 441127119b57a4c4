"""StudyTable: what a sweep's own table shows; `leaderboards.tables` renders it."""

from __future__ import annotations

from pydantic import Field

from ..api.config import Config


class StudyTable(Config):
    """The columns of a table with one row per record, and one for the floor they share."""

    metrics: tuple[str, ...] = Field(
        min_length=1, description="patterns of metrics, in the order of their columns"
    )
    statistic: str = Field("mean", pattern="^(mean|median)$")
    counts: dict[str, tuple[str, ...]] = Field(
        {}, description="extra columns: the total size of the parameters that match the patterns"
    )
