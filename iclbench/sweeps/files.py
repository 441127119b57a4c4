"""Sweep files: grids of runs in TOML, their sizes, and the order in which grids are run.

Every list is an axis of the grid, except `seeds`, `freeze`, `metrics` and `shift`, which one run
takes whole. An argument that is itself a list is written as a list of lists. A grid of one run may
have a `name`; a later grid with `init = "@name"` or `weights = "@name"` takes the weights it left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from ..api.config import Config, parse_config
from ..api.errors import UsageError, unknown
from ..api.names import Label, is_plain_name, visible
from ..api.options import parse_seeds
from ..api.spec import RunSpec, spec_options
from ..console import shell_path
from ..files import path_of, read_toml
from .fields import IS_TABLE, tables_named
from .figure import Figure
from .table import StudyTable

#: Fields that hold a list; a list given for one of them is not an axis of the grid.
_WHOLE = {name for name, option in spec_options().items() if option.is_list}


def _visible_path(text: str) -> str:
    if not text.strip():
        raise ValueError("a path is not empty")
    if not text.isprintable():
        raise ValueError("a path has visible characters only")
    return text


#: A folder that a file names: relative to where the command is run.
Folder = Annotated[Label, AfterValidator(_visible_path)]
#: A table of any fields, and a list of those.
Fields = Annotated[dict[str, Any], IS_TABLE]
Grids = Annotated[list[Fields], tables_named("grid")]


class Size(Config):
    """Another size of a sweep: its fields replace those of the file."""

    out: Folder | None = Field(
        None, description="default: the file's folder with the size's name appended"
    )
    title: str | None = Field(None, description="the figure's title")
    defaults: Fields = Field({}, description="fields of a run, each replaced as a whole")
    grid: Grids = Field(
        [],
        description="one table per grid of the file, in order; fields are replaced likewise",
    )


class SweepFile(Config):
    """A sweep: settings, defaults for every run, and grids, all of which are run."""

    out: Folder = "results"
    replicas: int = Field(32, ge=1, description="maximum number of models trained as one program")
    defaults: Fields = {}
    grid: Grids
    figure: Annotated[Figure, IS_TABLE] | None = Field(
        None, description="a figure of the sweep's records"
    )
    table: Annotated[StudyTable, IS_TABLE] | None = Field(
        None, description="a table of the sweep's records"
    )
    sizes: dict[str, Annotated[Size, IS_TABLE]] = Field(
        {}, description="other sizes by name; the file itself is `quick`"
    )
    _source: str = PrivateAttr("sweep")

    @model_validator(mode="after")
    def _sizes_fit(self) -> SweepFile:
        if not self.grid:
            raise ValueError("a sweep needs at least one [[grid]]")
        for name, size in self.sizes.items():
            if not is_plain_name(name):
                raise ValueError(f"sizes: {visible(name, 100)!r} can't name a folder")
            if len(size.grid) not in {0, len(self.grid)}:
                raise ValueError(
                    f"sizes.{name} has {len(size.grid)} grids, the file {len(self.grid)}"
                )
        return self

    def read_from(self, path: str) -> SweepFile:
        """The same file, which errors call by its path."""
        copy = self.model_copy()
        copy._source = path
        return copy

    @property
    def source(self) -> str:
        """What errors call the file."""
        return self._source

    def sized(self, name: str) -> SweepFile:
        """The sweep at the size of that name; raises UsageError for an unknown size."""
        if name == QUICK and QUICK not in self.sizes:
            return self
        if name not in self.sizes:
            raise unknown("size of this sweep", name, [QUICK, *self.sizes])
        size = self.sizes[name]
        grids = size.grid or [{} for _ in self.grid]
        figure = self.figure
        if figure is not None and size.title is not None:
            figure = figure.model_copy(update={"title": size.title})
        return self.model_copy(
            update={
                "out": size.out or f"{self.out}-{name}",
                "defaults": {**self.defaults, **size.defaults},
                "grid": [{**a, **b} for a, b in zip(self.grid, grids, strict=True)],
                "figure": figure,
                "sizes": {},
            }
        )


#: A sweep file: its path, its content, or what was read.
SweepSource = str | Path | Mapping[str, Any] | SweepFile

#: The most cells of a grid.
MOST_CELLS = 100_000

#: The size that a sweep file itself describes.
QUICK = "quick"


#: An axis of a grid: the values of a field, or of one of its arguments.
Axis = list[tuple[str, str | None, Any]]


def expand(grid: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The specs of one grid's cells: the product of every list in it.

    Raises UsageError for more than MOST_CELLS, before the first one.
    """
    axes = _axes(grid, defaults)
    _count(axes)
    return (_spec(cell) for cell in itertools.product(*axes))


def _samples(axes: list[Axis]) -> Iterator[dict[str, Any]]:
    """Cells in which every value of every axis occurs: their sum, not their product."""
    first = [axis[0] for axis in axes]
    yield _spec(first)
    for number, axis in enumerate(axes):
        for value in axis[1:]:
            yield _spec([*first[:number], value, *first[number + 1 :]])


def _axes(grid: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Axis]:
    merged: dict[str, Any] = dict(defaults)
    for name, value in grid.items():
        base = merged.get(name)
        both = isinstance(base, dict) and isinstance(value, dict)
        merged[name] = {**base, **value} if both else value  # type: ignore[dict-item]
    axes: list[Axis] = []
    for name, value in merged.items():
        if isinstance(value, dict):
            axes += [[(name, key, v) for v in _axis(values)] for key, values in value.items()]
        else:
            whole = name in _WHOLE
            if whole and isinstance(value, str) and name != "seeds":
                raise UsageError(f"{name} takes a list of names, not {value!r}")
            axes.append([(name, None, v) for v in ([value] if whole else _axis(value))])
    return axes


def _count(axes: list[Axis]) -> int:
    count = math.prod(len(axis) for axis in axes)
    if count > MOST_CELLS:
        raise UsageError(f"a grid of {count:,} cells is too large; at most {MOST_CELLS:,}")
    return count


def _spec(cell: Iterable[tuple[str, str | None, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for name, key, value in cell:
        if key is None:
            spec[name] = value
        else:
            spec.setdefault(name, {})[key] = value
    return with_parsed_seeds(spec)


def with_parsed_seeds(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run, with seeds that are given as on the command line, such as `3,7`."""
    seeds = spec.get("seeds")
    if not isinstance(seeds, str):
        return dict(spec)
    try:
        return {**spec, "seeds": parse_seeds(seeds)}
    except UsageError as error:
        raise UsageError(str(error).removeprefix("--")) from None


def _axis(value: Any) -> list[Any]:
    if value == []:
        raise UsageError("a grid with an empty list has no cells")
    return value if isinstance(value, list) else [value]


def read_sweep_file(file: SweepSource) -> SweepFile:
    """The sweep file at a path, or from its content; raises UsageError if it is invalid."""
    if isinstance(file, SweepFile):
        return file
    if isinstance(file, Mapping):
        return parse_config(SweepFile, file, "sweep")
    content = read_toml(path_of(file))
    if "stage" in content and "grid" not in content:
        raise UsageError(
            f"{file} is a campaign file: `iclbench campaign {shell_path(file)}` runs it"
        )
    return parse_config(SweepFile, content, str(file)).read_from(str(file))


def stages_of(file: SweepFile) -> list[list[dict[str, Any]]]:
    """The grids in stages: each grid comes in a later stage than the one whose weights it takes.

    Raises UsageError for every mistake that can be detected before anything runs.
    """
    with errors_of(file.source):
        if reference_of(file.defaults) is not None:
            raise UsageError("defaults can't take another run's weights")
    stages: list[list[dict[str, Any]]] = [[]]
    names: dict[str, int] = {}
    for number, grid in enumerate(file.grid, start=1):
        where = f"{file.source}: grid {number}"
        with errors_of(where):
            wanted = reference_of(grid)
            if wanted is not None and wanted not in names:
                raise UsageError(f"no grid before this one has the name {wanted!r}")
            # The path of the weights is not known yet; everything else is checked now.
            axes = _axes({k: v for k, v in grid.items() if k != "name"}, file.defaults)
            count, cells = _count(axes), list(_samples(axes))
        for cell in cells:
            parse_config(RunSpec, cell, where)
        stage = 0 if wanted is None else names[wanted] + 1
        if "name" in grid:
            with errors_of(where):
                _require_new_name(grid["name"], names, count)
            names[grid["name"]] = stage
        while len(stages) <= stage:
            stages.append([])
        stages[stage].append(grid)
    return stages


def _require_new_name(name: Any, names: Iterable[str], count: int) -> None:
    """Raise UsageError for a name that is no new text, or that would name several runs."""
    if not isinstance(name, str):
        raise UsageError(f"the name of a grid must be text, not {name!r}")
    if name in names:
        raise UsageError(f"two grids have the name {name!r}")
    if count != 1:
        raise UsageError(f"{name!r} names {count} runs, not one")


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Name the file, and perhaps the grid, in errors of the block."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def reference_of(grid: Mapping[str, Any]) -> str | None:
    """The name of the run whose weights a grid takes; raises UsageError for several names."""
    for option in ("init", "weights"):
        value = grid.get(option)
        several = value if isinstance(value, list) else []
        if any(isinstance(v, str) and v.startswith("@") for v in several):
            raise UsageError(f"{option} = {value} names several runs; write a grid for each")
        if isinstance(value, str) and value.startswith("@"):
            return value[1:]
    return None
