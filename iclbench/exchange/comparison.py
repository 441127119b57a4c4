"""Whether a dataset holds the prompts that its document says: they are made again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..api.errors import RecordError
from ..runs.strangers import require_shipped_data, require_small_numbers
from .document import Export
from .memory import bounded_memory
from .task_data import export_task

if TYPE_CHECKING:
    from pyarrow import ChunkedArray, Table
    from pyarrow.parquet import ParquetFile

#: Targets may differ by this much, relative to the largest: another machine rounds otherwise.
TOLERANCE = 1e-5
#: Another version of pyarrow may encode the same values with up to so many times the bytes …
LARGER = 10
#: … and takes this much memory to read them, in bytes.
MARGIN = 2**29


def require_same_prompts(folder: Path, export: Export) -> None:
    """Raise RecordError unless the document's arguments make the same prompts and targets.

    Arguments that name data of this machine or of the hub are refused: a stranger chose them.
    Raises UsageError where the task or one of its arguments is unknown.
    """
    require_shipped_data(export.task_args, "; --no-verify copies it without making its prompts")
    require_small_numbers(export.task_args)
    _require_rows(folder, export)
    with tempfile.TemporaryDirectory(prefix="iclbench-") as temporary:
        again = export_task(
            export.task,
            export.prompts,
            temporary,
            task_args=export.task_args,
            seed=export.seed,
            dtype=export.dtype,
        )
        if (again.task_version, again.digest) != (export.task_version, export.digest):
            raise RecordError(f"its arguments generate other prompts of {export.task}")
        described = _described(export)
        for name, value in _described(again).items():
            if value != described[name]:
                raise RecordError(f"its {name} is not that of its task")
        for ours, theirs in zip(again.files, export.files, strict=True):
            if ours.sha256 != theirs.sha256:
                _require_close(Path(temporary) / ours.path, folder / theirs.path)


def _described(export: Export) -> dict[str, Any]:
    """What the document says, without what the rounding of another machine changes."""
    of_bytes = {"files": {"__all__": {"bytes", "sha256"}}}
    return export.model_dump(mode="json", exclude=of_bytes)


def _require_rows(folder: Path, export: Export) -> None:
    """Raise RecordError unless every file has a row for each prompt.

    What is not there is not made again: a document may claim ten million prompts.
    """
    from pyarrow import ArrowException, parquet

    for file in export.files:
        try:
            rows = parquet.read_metadata(folder / file.path).num_rows
        except (ArrowException, OSError) as error:
            raise RecordError(f"{file.path} is not Parquet: {str(error)[:100]}") from None
        if rows != export.prompts:
            raise RecordError(f"{file.path} has {rows:,} rows for {export.prompts:,} prompts")


def _require_close(ours: Path, theirs: Path) -> None:
    """Raise RecordError for files that differ in more than the last bits of numbers."""
    from pyarrow import ArrowException, parquet

    name = f"data/{theirs.name}"
    try:
        if not _have_one_form(ours, theirs):
            raise RecordError(f"{name} does not have the columns and values of its task")
        expected = parquet.read_table(ours)
        # What a file says of itself may be wrong, and a few kilobytes can unpack to gigabytes.
        with bounded_memory(MARGIN + LARGER * expected.nbytes):
            given = _read_alone(theirs)
    except MemoryError:
        raise RecordError(f"{name} unpacks to far more than the data of its task") from None
    except (ArrowException, OSError) as error:
        raise RecordError(f"{name} is not Parquet: {str(error)[:100]}") from None
    if given.num_rows != expected.num_rows or given.nbytes > LARGER * expected.nbytes:
        raise RecordError(f"{name} unpacks to far more than the data of its task")
    for column in expected.column_names:
        (lengths, mine), (their_lengths, yours) = _flat(expected[column]), _flat(given[column])
        if lengths != their_lengths or yours.null_count:
            raise RecordError(f"{name}: {column} lacks some of its numbers")
        if not _are_close(mine, yours):
            raise RecordError(f"{name}: {column} differs from its task")


def _flat(column: ChunkedArray) -> tuple[list[ChunkedArray], ChunkedArray]:
    """The lengths of a column's lists, of all levels, and what is in the innermost ones.

    Nothing becomes an object of Python, which would take ten times the memory.
    """
    from pyarrow import compute, types

    lengths = []
    while types.is_list(column.type) or types.is_fixed_size_list(column.type):
        lengths.append(compute.list_value_length(column))
        column = compute.list_flatten(column)
    return lengths, column


def _are_close(mine: ChunkedArray, yours: ChunkedArray) -> bool:
    """Whether numbers agree but for the last bits, and all else agrees."""
    from pyarrow import types

    if not types.is_floating(mine.type):
        return bool(mine.equals(yours))
    expected, given = mine.to_numpy(), yours.to_numpy()
    # NaN is padding, and says nothing about the size of the others.
    size = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    atol = TOLERANCE * size
    return np.allclose(expected, given, rtol=TOLERANCE, atol=atol, equal_nan=True)


def _read_alone(path: Path) -> Table:
    """Read a file without threads: one that gets no memory would be waited for without end."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False) as file:
        return file.read(use_threads=False)


def _have_one_form(ours: Path, theirs: Path) -> bool:
    """Whether two files have the same columns and as many values, by what they say of themselves.

    Nothing is unpacked. Most files that differ are refused here, before they take any memory.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(ours) as mine, parquet.ParquetFile(theirs) as yours:
        if not mine.schema_arrow.equals(yours.schema_arrow):
            return False
        (values, size), (their_values, their_size) = map(_extent, (mine, yours))
        return values == their_values and their_size <= LARGER * size


def _extent(file: ParquetFile) -> tuple[tuple[int, int], int]:
    """The numbers of rows and of values, and the bytes of all columns when they are unpacked."""
    about = file.metadata
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(about.num_columns)]
    sizes = sum(column.total_uncompressed_size for column in columns)
    return (about.num_rows, sum(column.num_values for column in columns)), sizes
