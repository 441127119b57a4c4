"""The records in folders, without those that lie beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..api.errors import UsageError
from ..console import shell_path
from ..files import STAGING


def record_paths(given: Sequence[Path]) -> list[Path]:
    """The given records, and those in the given folders, each once.

    A campaign's trials, its seeds trained apart and its sweeps lie beside its records, and are left
    out; so is what a killed process was about to write. Raises UsageError for an empty folder and
    for a TOML file, such as a sweep's.
    """
    from ..runs.store import is_record

    paths: dict[Path, Path] = {}
    for path in given:
        if path.suffix == ".toml" and not path.is_dir():
            name = shell_path(path)
            raise UsageError(
                f"{path} is not a record: of a sweep file, `iclbench sweep {name}` makes records "
                f"and `iclbench leaderboard figure {name}` draws their figure"
            )
        records = [path]
        if path.is_dir():
            below = [p for p in sorted(path.rglob("*.json")) if is_record(p)]
            beside = beside_records()
            folders = {p: p.relative_to(path).parts[:-1] for p in below}
            records = [
                p
                for p in below
                if beside.isdisjoint(folders[p])
                and not any(name.startswith(STAGING) for name in folders[p])
            ]
            if below and not records:
                raise UsageError(
                    f"all records in {path} are in folders named {' or '.join(sorted(beside))}, "
                    "which lie beside the records of a campaign: give such a folder itself"
                )
        if not records:
            raise UsageError(f"there are no records in {path}")
        for record in records:
            paths.setdefault(real_path(record), record)
    return list(paths.values())


def real_path(record: Path) -> Path:
    """What tells whether two paths are one file; a loop of links is itself."""
    try:
        return record.resolve()
    except (OSError, RuntimeError):
        return record.absolute()


def beside_records() -> set[str]:
    """The folders of a campaign that lie beside its records and hold others."""
    from .campaign.apart import SEEDS
    from .campaign.progress import SWEEPS
    from .tuning.planning import TRIALS_FOLDER

    return {TRIALS_FOLDER, SEEDS, SWEEPS}
