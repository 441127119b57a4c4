"""Cited rows: published results that can't be verified here, from `leaderboards/cited.toml`.

They are shown apart, below a task's tables, and never ranked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from ..api.config import Config
from ..api.digits import ErrorKind
from ..api.errors import UsageError, unknown
from ..api.names import is_plain_name
from ..plugins import host
from .documents import read_document
from .grouping import grouped

FILE = "cited.toml"


class Cited(Config):
    """A number of a paper: what it is of, where it stands, and how the setting differs."""

    task: str = Field(description="the task on whose page it is shown")
    model: str = Field(min_length=1, max_length=100, description="what the paper calls the model")
    metric: str = Field(min_length=1, max_length=100, description="metric and statistic")
    value: float = Field(gt=0)
    approximate: bool = Field(
        False, description="whether the paper gives an order of magnitude, or a figure alone"
    )
    error: ErrorKind | None = Field(
        None,
        description="whether the value is of an absolute or a squared error; then it has digits",
    )
    setting: str = Field(min_length=1, max_length=300, description="data, sizes, training, dtype")
    differs: str = Field(min_length=1, max_length=300, description="from the boards of the task")
    source: str = Field(min_length=1, max_length=300, description="paper, and figure or section")
    url: str = Field(
        "", max_length=300, pattern=r"^(https://[\w./?=&%#~-]+)?$", description="the paper"
    )

    @property
    def text(self) -> str:
        """The value as a table shows it, with the digits that its error has.

        A board's digits are means over prompts, which few bad prompts move less than a mean error.
        """
        mark = "≈ " * self.approximate
        digits = -math.log10(self.value) / (2 if self.error == "squared" else 1)
        text = f", {mark}{digits:.1f} digits of the mean" if self.error else ""
        return f"{mark}{self.value:.3g}{text}"

    @property
    def sentence(self) -> str:
        """All of it, for a terminal."""
        what = f"{self.model}: {self.metric} {self.text} ({self.setting})"
        return f"- {what}. Differs: {self.differs}. Source: {self.source}."


class _File(Config):
    cited: list[Cited] = []


def read_cited(folder: Path, tasks: Iterable[str] = ()) -> dict[str, list[Cited]]:
    """The cited rows of each task in `folder`/cited.toml; none if there is no such file.

    Raises UsageError with the reason for a file that is not valid, such as one with a task that is
    neither installed nor among `tasks`, those of the boards.
    """
    path = folder / FILE
    cited = read_document(path, _File).cited
    known = {*tasks, *(installed.name for _, installed in host().entries("task"))}
    for entry in cited:
        if not is_plain_name(entry.task):
            raise UsageError(f"{path}: {entry.task[:100]!r} is not the name of a task")
        if entry.task not in known:
            reason = unknown("task", entry.task, known)
            raise UsageError(f"{path}: the row of {entry.model}: {reason}")
    return grouped(cited, lambda entry: entry.task)
