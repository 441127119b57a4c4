"""export.json: how a task's dataset was made, and what its files are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from ..api.config import Config, parse_config
from ..api.errors import UsageError
from ..api.names import Label, is_plain_name
from ..files import read_json
from ..plugins import host
from ..runs.code import HARNESS

#: The document's name, and the most bytes of it that are read.
DOCUMENT, MOST_DOCUMENT_BYTES = "export.json", 2**20


class Column(Config):
    """A column of the files: one row per prompt."""

    name: Label
    dtype: Literal["float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]
    shape: tuple[int, ...] = Field(description="of one prompt's value; () for a number")


class DataFile(Config):
    """A Parquet file: the prompts of one case."""

    path: str = Field(pattern=r"^data/[a-z0-9-]{1,100}\.parquet$")
    split: str = Field(pattern=r"^[a-z0-9_]{1,100}$", description="its name for `datasets`")
    rows: int
    bytes: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    columns: tuple[Column, ...]


class Export(Config):
    """How a task's dataset was made, and its files."""

    format: Literal["iclbench task data 1"] = "iclbench task data 1"
    task: str
    summary: Label
    task_version: int
    task_args: dict[str, Any]
    prompts: int = Field(description="number of prompts of each case")
    seed: int = Field(description="the evaluation seed")
    dtype: Literal["float32", "float64"]
    digest: str = Field(
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of the raw draws, as in the records of runs on these prompts",
    )
    about: str = Field(description="the fields of a prompt")
    metric: Label = Field(description="the metric that the task ranks by")
    floor: str = Field(description="the task's floor")
    provenance: dict[str, Any] = Field(description="the sources of data that are not drawn")
    command: str
    files: tuple[DataFile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _files_are_apart(self) -> Export:
        for name in ("path", "split"):
            if len({getattr(file, name) for file in self.files}) < len(self.files):
                raise ValueError(f"two files have the same {name}")
        return self


def is_ours(export: Export) -> bool:
    """Whether all of the data come from this distribution, whose license they then have.

    Others' data, and tasks of others' plugins, have licenses of their own.
    """
    providers = {plugin.distribution for plugin, e in host().entries("task")
                 if e.name == export.task}  # fmt: skip
    return not export.provenance and providers == {HARNESS}


def read_export(folder: Path) -> Export:
    """The export in a folder; raises RecordError or UsageError for a damaged document."""
    path = folder / DOCUMENT
    try:
        content = read_json(path, MOST_DOCUMENT_BYTES)
    except ValueError as error:
        raise UsageError(f"{path} does not describe an export: {error}") from None
    export = parse_config(Export, content, str(path))
    for what, name in (("task", export.task), ("metric", export.metric)):
        if not is_plain_name(name):
            raise UsageError(f"{path}: its {what} is not a plain name")
    return export
