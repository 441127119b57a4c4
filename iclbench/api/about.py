"""About: what pages say of a task or a model, from the file `about.toml` of its plugin.

The texts lie in a file of their own, so that a change of words is no change of code.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator, model_validator

from .config import Config

#: The name of the file, in the package of a plugin's entry point.
ABOUT_FILE = "about.toml"

Line = Annotated[str, StringConstraints(max_length=600, pattern=r"^[^\r\n]*$")]
#: What an argument is called with its value for `{}`; or a text for each value, and for others `*`.
#: One that is not worth saying has an empty text.
Words = Line | dict[str, Line]
Title = Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[^\r\n]+$")]

_INITIAL = re.compile(r"\b[A-Z]\.")


class Paper(Config):
    """A paper that tasks and models are from."""

    title: Line
    authors: Line = Field(description="joined by `and`, as in BibTeX")
    year: int = Field(ge=1600, le=2200)
    venue: Line = Field("", description="journal, conference or archive")
    url: str = Field(pattern=r"^https://[^\s\"<>]+$")

    @field_validator("authors")
    @classmethod
    def _names_are_there(cls, authors: str) -> str:
        names = authors.split(" and ")
        if not all(map(str.strip, names)):
            raise ValueError("a name is missing")
        for name in names:
            # `Last, First` and `Last, Jr., First` are one person; `F. Last, Given Last` are two.
            first, *others = [part.strip() for part in name.split(",")]
            has_initial = bool(others) and _INITIAL.search(first)
            if has_initial or any(" " in part for part in others[:-1]):
                raise ValueError(f"join names by `and`, as in BibTeX, not by commas: {name!r}")
        return authors

    @property
    def short(self) -> str:
        """Authors and year, such as Liu et al. 2025."""
        names = [self._family(name) for name in self.authors.split(" and ")]
        if len(names) > 2 or names[-1] == "others":
            return f"{names[0]} et al. {self.year}"
        return f"{' and '.join(names)} {self.year}"

    @staticmethod
    def _family(name: str) -> str:
        family, comma, _ = name.partition(",")
        return family.strip() if comma else name.rsplit(maxsplit=1)[-1]

    def bibtex(self, key: str) -> str:
        """The paper as an entry of BibTeX."""
        fields = {"title": f"{{{self.title}}}", "author": self.authors, "year": str(self.year),
                  "howpublished": self.venue, "url": self.url}  # fmt: skip
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@misc{{{key},", *lines, "}"])


class About(Config):
    """What pages say of one task or model."""

    title: Title = Field(description="a short name, for the heads of columns")
    text: Line = Field(description="two sentences: what a task asks, or what a model is")
    formula: Line = Field("", description="in LaTeX's mathematical mode")
    papers: tuple[str, ...] = Field((), description="keys of the file's papers")
    arguments: dict[str, Words] = Field({}, description="its arguments in words")


class TaskAbout(About):
    """What pages say of a task."""

    group: Title = Field(description="the family that it is shown with")
    metrics: dict[str, Line] = Field({}, description="the metrics' names in words")


class ModelAbout(About):
    """What pages say of a model."""

    state: Line = Field("", description="what a layer keeps of a prompt, in numbers")
    reads: Line = Field(
        "", description="what it is given of a prompt instead of tokens, to follow the name"
    )


class AboutFile(Config):
    """The whole file: tables `tasks`, `models` and `papers`, by name.

    `arguments` are those of all its tasks and models, and `metrics` the names in words of what the
    plugin's metrics measure on any task; a task's own texts come first.
    """

    arguments: dict[str, Words] = {}
    metrics: dict[str, Line] = {}
    tasks: dict[str, TaskAbout] = {}
    models: dict[str, ModelAbout] = {}
    papers: dict[str, Paper] = {}

    @model_validator(mode="after")
    def _papers_are_there(self) -> AboutFile:
        for name, about in [*self.tasks.items(), *self.models.items()]:
            for key in about.papers:
                if key not in self.papers:
                    raise ValueError(f"{name}: there is no paper {key!r} in the file")
        return self
