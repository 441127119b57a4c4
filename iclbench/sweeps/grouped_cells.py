"""Which cells of a sweep train together, and the checkpoints that they continue."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from ..api.errors import CheckpointError
from ..console import counted
from ..runs.store import RecordStore
from ..runs.training import checkpoint_of, training_code
from ..training.checkpoints import Checkpoint, other_code, unusable
from .cells import Cells, SweepCell


def group_cells(cells: Sequence[SweepCell], replicas: int) -> list[list[SweepCell]]:
    """The cells of each program, which differ only in what replicas can vary."""
    programs: dict[str, list[list[SweepCell]]] = {}
    models: dict[str, int] = {}
    for cell in cells:
        parts = programs.setdefault(cell.program, [[]])
        count = models.get(cell.program, 0) + cell.seeds
        if count > replicas and parts[-1]:
            parts.append([])
            count = cell.seeds
        models[cell.program] = count
        parts[-1].append(cell)
    return [part for parts in programs.values() for part in parts]


def group_missing(
    cells: Sequence[SweepCell], missing: Sequence[SweepCell], replicas: int, store: RecordStore
) -> list[list[SweepCell]]:
    """The programs of the `missing` ones of a stage's cells.

    A group that had begun when no cell had a record stays as it was, whichever cells of other
    groups have failed since; otherwise its checkpoint would be lost. The others fill programs.
    """
    ids = {cell.id for cell in missing}
    present = _checkpoints(cells, store)
    programs = {*present.values()}
    parts = [[c for c in part if c.id in ids] for part in group_cells(cells, replicas)]
    begun = [
        part
        for part in parts
        if part
        and (len(part) == 1 or part[0].program in programs)
        and checkpoint_of_group(part, store).exists()
    ]
    kept = {cell.id for part in begun for cell in part}
    for group in group_cells([cell for cell in missing if cell.id not in kept], replicas):
        begun += _begun_parts(group, store, present) if group[0].program in programs else [group]
    return begun


def _begun_parts(
    group: list[SweepCell], store: RecordStore, present: Container[Path]
) -> list[list[SweepCell]]:
    """A group, or those parts of it that have begun as groups, and the others.

    A group's first cells have begun where the sweep has more cells since, and its halves where
    memory is short.
    """
    recorded = {cell.id for cell in group if store.path(cell).exists()}

    def has_begun(part: Sequence[SweepCell]) -> bool:
        ids = [cell.id for cell in part if cell.id not in recorded] or [cell.id for cell in part]
        return checkpoint_of(ids, part[0].program, store.folder) in present

    def parts_of(whole: list[SweepCell]) -> list[list[SweepCell]]:
        for end in range(len(whole), 1, -1):
            if has_begun(whole[:end]):
                return [whole[:end], *(parts_of(whole[end:]) if whole[end:] else [])]
        half = (len(whole) + 1) // 2
        parts = [*parts_of(whole[:half]), *parts_of(whole[half:])] if half > 1 else [whole]
        return parts if any(map(has_begun, parts)) else [whole]

    return parts_of(group)


def with_halves(group: Sequence[SweepCell]) -> Iterator[Sequence[SweepCell]]:
    """A group, and the parts that it is run in where memory is short."""
    yield group
    half = (len(group) + 1) // 2
    if half < len(group):
        yield from with_halves(group[:half])
        yield from with_halves(group[half:])


def checkpoint_of_group(group: Sequence[SweepCell], store: RecordStore) -> Path:
    """Where the program of these cells keeps its checkpoint: it trains those without a record."""
    missing = [cell for cell in group if not store.path(cell).exists()]
    return checkpoint_of([cell.id for cell in missing or group], group[0].program, store.folder)


def _checkpoints(cells: Iterable[SweepCell], store: RecordStore) -> dict[Path, str]:
    """The checkpoints of several runs of these cells' programs, with the program of each.

    The folder is listed once: on a network, asking for each file takes long.
    """
    programs = {cell.program for cell in cells}
    paths = (store.folder / "checkpoints").glob("*-*.safetensors")
    return {p: name for p in paths if (name := p.name.rpartition("-")[0]) in programs}


def unused_checkpoints(
    cells: Iterable[SweepCell], groups: Iterable[Sequence[SweepCell]], store: RecordStore
) -> str:
    """A line about the checkpoints of a stage's cells that none of the groups continues; or none.

    A checkpoint is that of all the runs that were trained together.
    """
    present = _checkpoints(cells, store)
    used = {
        checkpoint_of_group(part, store)
        for group in groups
        if group[0].program in present.values()
        for part in with_halves(group)
    }
    unused = sorted(present.keys() - used)
    if not unused:
        return ""
    return (
        f"{counted(len(unused), 'checkpoint')} of other groups of such runs can't be continued "
        f"with these cells and replicas: {unused[0]}"
    )


def refused_checkpoint(group: Sequence[SweepCell], cells: Cells) -> str:
    """Why a group's checkpoint can't be continued with the installed code; empty if it can."""
    path = checkpoint_of_group(group, cells.store)
    try:
        values = Checkpoint.load_values(path)
    except CheckpointError as error:
        # Its program may have ended since it was listed.
        return str(error) if path.exists() else ""
    # Models that are kept for their evaluation have theirs apart.
    before = values.get("kept", values).get("code", {})
    now = training_code([cells.plan(cell) for cell in group])
    return "" if before == now else str(unusable(path, other_code(before, now)))
