"""What the studies ask and what their papers show, from `leaderboards/studies.toml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from ..api.config import Config
from ..api.errors import UsageError
from ..api.names import is_plain_name
from ..api.record import Record
from . import formats
from .documents import read_document
from .values import Value, numbers_of, record_of

FILE = "studies.toml"
#: A number in an answer.
_NUMBER = re.compile(r"\{(\w+)\}")


class Published(Config):
    """A number that a paper states."""

    name: str = Field(min_length=1, max_length=100, description="the line or model of the figure")
    value: float = Field(gt=0)
    approximate: bool = Field(False, description="an order of magnitude, or read from a caption")
    bound: Literal["below", "above"] | None = Field(
        None, description="if the paper says that the number is below or above this one"
    )

    @property
    def text(self) -> str:
        """The number as a figure shows it."""
        sign = {"below": "< ", "above": "> "}.get(self.bound or "", "≈ " * self.approximate)
        is_whole = self.value < 1e6 and self.value == int(self.value)
        return f"{sign}{f'{self.value:,.0f}' if is_whole else formats.short(self.value, 5)}"


class StudyNotes(Config):
    """A study's question, and what the paper's figure shows."""

    records: str = Field(description="folder of the study's records")
    question: str = Field(min_length=1, max_length=200)
    source: str = Field(min_length=1, max_length=200, description="paper, and figure or section")
    link: str = Field(pattern=r"^https://[\w./?=&%-]+$", max_length=200)
    shows: str = Field(min_length=1, max_length=800, description="the paper's figure in words")
    answer: str = Field(
        "",
        max_length=400,
        description="what our records answer, where no verdict answers it; {name} is a number",
    )
    numbers: dict[str, Value] = Field({}, description="the numbers in `answer`, by their names")
    remark: str = Field("", max_length=600, description="what readers of our figure need to know")
    metric: str = Field("", max_length=100, description="what the published numbers are")
    published_as: str = Field(
        "stated in the paper", min_length=1, max_length=60, description="where they come from"
    )
    published: tuple[Published, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> StudyNotes:
        named = set(_NUMBER.findall(self.answer))
        if named != self.numbers.keys():
            odd = ", ".join(sorted(named ^ self.numbers.keys()))
            raise ValueError(f"its answer and its numbers disagree on {odd}")
        return self

    def answered(self, records: Sequence[Record]) -> str:
        """The answer with the numbers of these records; empty if they lack one.

        Raises UsageError for a number that several records have, or that its record lacks.
        """
        sources = {name: record_of(value, records, FILE) for name, value in self.numbers.items()}
        texts = {
            name: formats.short(numbers_of(self.numbers[name], record, FILE)[0]).replace("-", "−")
            for name, record in sources.items()
            if record is not None
        }
        if len(texts) < len(sources):
            return ""
        return _NUMBER.sub(lambda match: texts[match[1]], self.answer)


class _File(Config):
    study: list[StudyNotes] = []


def read_notes(folder: Path) -> dict[str, StudyNotes]:
    """The notes in `folder`/studies.toml by the folder of the records; none without the file.

    Raises UsageError with the reason for a file that is not valid.
    """
    path = folder / FILE
    notes = read_document(path, _File).study
    for one in notes:
        if not is_plain_name(one.records):
            raise UsageError(f"{path}: {one.records[:100]!r} is not a plain name of a folder")
        if one.published and not one.metric:
            raise UsageError(f"{path}: {one.records} has numbers without a metric")
    return {one.records: one for one in notes}
