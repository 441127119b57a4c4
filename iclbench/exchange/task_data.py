"""A task's prompts as a dataset: Parquet files, a card, Croissant metadata, and export.json.

The same arguments give the same bytes, with the same versions of iclbench and of pyarrow.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from ..api.config import parse_config
from ..api.errors import RecordError, UsageError, unknown
from ..api.options import Arguments
from ..api.prompts import Batch
from ..api.task import Task
from ..console import counted
from ..files import (
    STAGING,
    file_digest,
    is_free,
    nearest_existing,
    path_of,
    staged,
    write_atomically,
)
from ..plugins import host
from ..precision import DTYPES, full_precision
from ..runs.sizes import require_room, require_small_arguments
from ..training.threads import one_thread
from .cards import task_card
from .croissant import croissant
from .document import DOCUMENT, Column, DataFile, Export, read_export

#: The most prompts.
MOST_PROMPTS = 10_000_000
#: Prompts are made and written in parts of this size, which are the row groups of the files.
PART_PROMPTS = 1024
#: The card and the metadata, which follow from the document.
TEXTS = ("README.md", "croissant.json")


def export_task(
    task: str,
    prompts: int,
    out: str | Path,
    *,
    task_args: dict[str, Any] | None = None,
    seed: int = 0,
    dtype: Literal["float32", "float64"] = "float32",
) -> Export:
    """Write the task's evaluation prompts with their targets into the folder `out`.

    Prompts are in `dtype`, targets in float64. An earlier export is replaced; other files stay.
    Raises UsageError for a bad argument, a folder that holds anything other than an unchanged
    export, or whose disk has no room.
    """
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    if not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed={seed!r} is no whole number of 0 or more")
    folder = path_of(out)
    earlier = _earlier_export(folder)
    loaded = _load(task, dict(task_args or {}), prompts)
    names = [*TEXTS, *(_data_path(name) for name in _file_names(loaded))]
    others = _unknown_files(folder, names, earlier)
    _require_disk(folder, loaded, prompts, dtype)
    chosen = {"prompts": prompts, "seed": seed, "dtype": dtype}
    # torch divides a sum over its threads, which can change last bits.
    with staged(folder) as new, full_precision(DTYPES[dtype]), one_thread():
        digest, files = _write_files(loaded, prompts, seed, dtype, new)
        export = _describe(loaded, chosen, digest, files)
        document = export.model_dump_json(indent=1) + "\n"
        write_atomically(new / DOCUMENT, document.encode())
        for name, content in texts_of(export).items():
            write_atomically(new / name, content)
        _require_equal(folder, others, new)
    for file in earlier.files if earlier else ():
        if file.path not in names:
            (folder / file.path).unlink(missing_ok=True)
    return export


def _load(name: str, args: dict[str, Any], prompts: int) -> Task[Any]:
    """The task, after checking its arguments and that the prompts have room."""
    if not isinstance(prompts, int) or not 0 < prompts <= MOST_PROMPTS:
        raise UsageError(f"prompts must be a number from 1 to {MOST_PROMPTS:,}, not {prompts!r}")
    kind: type[Task[Any]] = host().load("task", name, Task)
    config = parse_config(kind.Config, args, f"task {name}")
    require_small_arguments(config, f"task {name}")
    task = kind(config)
    require_room(min(prompts, PART_PROMPTS) * len(task.cases), task.signature, f"task {name}")
    return task


def _earlier_export(folder: Path) -> Export | None:
    """The export that a folder holds, which may be replaced, or None.

    Raises UsageError for a document that is not an export's.
    """
    if folder.is_file():
        raise UsageError(f"{folder} is a file: give a folder")
    if not (folder / DOCUMENT).is_file():
        return None
    try:
        return read_export(folder)
    except (RecordError, UsageError) as error:
        raise UsageError(f"{_holds_others(folder)} ({error})") from None


def _unknown_files(folder: Path, names: Sequence[str], earlier: Export | None) -> list[str]:
    """Those of the files `names`, which will be replaced, that the earlier export did not write.

    The same command may have written them before it was interrupted; see `_require_equal`. Raises
    UsageError for a folder that holds anything else, or an export that was changed.
    """
    if earlier is None and _other_files(folder, names):
        raise UsageError(_holds_others(folder))
    written = {}
    if earlier is not None:
        written = {file.path: file.sha256 for file in earlier.files}
        texts = texts_of(earlier).items()
        written |= {name: hashlib.sha256(content).hexdigest() for name, content in texts}
    unknown = []
    for name in dict.fromkeys([*names, *written]):
        path = folder / name
        # What is no regular file is not read: a pipe would never end.
        if path.exists() and not (path.is_file() and file_digest(path) == written.get(name)):
            if name not in names or not path.is_file():
                raise UsageError(_not_ours(path))
            unknown.append(name)
    return unknown


def _other_files(folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder without a document holds anything that the export would not replace."""
    if is_free(folder):
        return False
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    others = (path for path in paths if path not in names and not path.startswith(STAGING))
    return any(not (folder / path).is_dir() for path in others)


def _require_equal(folder: Path, unknown: Sequence[str], new: Path) -> None:
    """Raise UsageError for a file of unknown origin that is not the one that will replace it."""
    for name in unknown:
        if file_digest(folder / name) != file_digest(new / name):
            raise UsageError(_not_ours(folder / name))


def _holds_others(folder: Path) -> str:
    return f"{folder} holds other files: give a new folder, or an earlier export"


def _not_ours(path: Path) -> str:
    return f"{path} is not what `iclbench export` wrote there: give a new folder, or move it"


def _require_disk(folder: Path, task: Task[Any], prompts: int, dtype: str) -> None:
    """Raise UsageError for prompts that the disk has no room for. Random numbers don't compress."""
    fields = sum(math.prod(shape) for shape in task.signature.shapes.values())
    needed = prompts * len(task.cases) * fields * DTYPES[dtype].itemsize
    free = shutil.disk_usage(nearest_existing(folder)).free
    if needed > free:
        raise UsageError(
            f"{counted(prompts, 'prompt')} take about {needed / 1e9:,.1f} GB; the disk of {folder} "
            f"has {free / 1e9:,.1f} GB left"
        )


def _file_names(task: Task[Any]) -> list[str]:
    """The name of each case's file."""
    return ["test" if case is None else f"case-{case}" for case in task.cases]


def _data_path(name: str) -> str:
    return f"data/{name}.parquet"


def texts_of(export: Export) -> dict[str, bytes]:
    """The content of TEXTS by their paths: all of it follows from the document."""
    metadata = json.dumps(croissant(export), indent=1, ensure_ascii=False) + "\n"
    return dict(zip(TEXTS, (task_card(export).encode(), metadata.encode()), strict=True))


def _write_files(
    task: Task[Any], prompts: int, seed: int, dtype: str, folder: Path
) -> tuple[str, list[DataFile]]:
    """Write a file per case; returns the digest of all draws, and the files."""
    import pyarrow
    from pyarrow import parquet

    names = _file_names(task)
    (folder / "data").mkdir()
    digest = task.draws_digest()
    writers: dict[str, Any] = {}
    columns: dict[str, tuple[Column, ...]] = {}
    rows = dict.fromkeys(names, 0)
    try:
        for batches in task.evaluation_parts(prompts, seed, DTYPES[dtype], PART_PROMPTS, digest):
            for name, batch in zip(names, batches, strict=True):
                tensors = columns_of(batch)
                table = pyarrow.table({key: _array(pyarrow, t) for key, t in tensors.items()})
                if name not in writers:
                    path = folder / _data_path(name)
                    writers[name] = parquet.ParquetWriter(path, table.schema, compression="zstd")
                    columns[name] = tuple(_column(key, t) for key, t in tensors.items())
                writers[name].write_table(table, row_group_size=PART_PROMPTS)
                rows[name] += table.num_rows
    finally:
        for writer in writers.values():
            writer.close()
    return digest.hexdigest(), [_file(folder, n, rows[n], columns[n]) for n in names]


def columns_of(batch: Batch) -> dict[str, Tensor]:
    """The columns of a batch: the prompt's fields, the target, and what is known of each prompt.

    Fields without numbers, and truths that are not one per prompt, are left out.
    """
    count = len(batch.target)
    fields = {**batch.prompt._asdict(), "target": batch.target}
    truth = {f"truth_{key}": t for key, t in batch.truth.items() if len(t) == count}
    return {key: t for key, t in (fields | truth).items() if t.numel()}


def _array(pyarrow: Any, tensor: Tensor) -> Any:
    """A column as nested lists of fixed lengths, which hold its shape."""
    values = tensor.contiguous().numpy()
    array = pyarrow.array(values.reshape(-1))
    for length in reversed(values.shape[1:]):
        array = pyarrow.FixedSizeListArray.from_arrays(array, length)
    return array


def _column(name: str, tensor: Tensor) -> Column:
    dtype: Any = str(tensor.dtype).removeprefix("torch.")
    return Column(name=name, dtype=dtype, shape=tuple(tensor.shape[1:]))


def _file(folder: Path, name: str, rows: int, columns: tuple[Column, ...]) -> DataFile:
    path = folder / _data_path(name)
    return DataFile(
        path=_data_path(name),
        split=name.replace("-", "_"),
        rows=rows,
        bytes=path.stat().st_size,
        sha256=file_digest(path),
        columns=columns,
    )


def _describe(
    task: Task[Any], chosen: dict[str, Any], digest: str, files: list[DataFile]
) -> Export:
    """The document; `chosen` holds the number of prompts, the seed and the dtype."""
    _, entry = host().provider("task", task.name)
    args = task.config.model_dump(mode="json")
    words = ["iclbench", "export", "--task", task.name]
    for text in Arguments().write(args):
        words += ["--task-args", text]
    for name, value in chosen.items():
        words += [f"--{name}", str(value)]
    about = " ".join((task.signature.prompt.__doc__ or "").split())
    return Export(
        task=task.name,
        summary=entry.summary,
        task_version=task.version,
        task_args=args,
        **chosen,
        digest=digest,
        about=about,
        metric=task.primary.metric,
        floor=" ".join(f"{task.floor_kind}: {task.floor_summary}".split()).removesuffix(":"),
        provenance=dict(task.provenance),
        command=shlex.join([*words, "OUT"]),
        files=tuple(files),
    )
