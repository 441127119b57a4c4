"""Checking which files a pull request changes: records with all their files, or none of them.

`python -m iclbench.leaderboards.pull_request BASE HEAD OUT` runs in a checkout of the base branch,
whose code this is. Of the pull request nothing is executed and nothing is checked out: its files
are read from git as data, and those of records are written to OUT, to be verified there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..api.errors import RecordError, UsageError, problem_with
from ..api.names import is_plain_name, visible
from ..api.tuning import tuning_bytes
from ..files import LEADERBOARDS, RECORDS, STUDIES, is_free
from ..runs.heldout import SUFFIX
from ..runs.objects import OBJECTS_FOLDER
from ..runs.proofs import is_retrained
from ..runs.store import is_record_name, read_record, require_place
from ..runs.strangers import require_harmless
from ..runs.tuned import TUNINGS_FOLDER, tuning_path
from .argument_numbers import require_few_numbers
from .reading import sound_records

#: The folders of records: those of leaderboards, and one folder for each study.
BOARDS = PurePosixPath(LEADERBOARDS, RECORDS)
OF_STUDIES = PurePosixPath(LEADERBOARDS, STUDIES)
#: The folder of the tunings that records embed; a file is named by its content.
TUNINGS = PurePosixPath(LEADERBOARDS, TUNINGS_FOLDER)
#: The tables that are built from the records, which a pull request of records brings up to date.
TABLES = re.compile(
    r"leaderboards/((README|precision|stale|findings|tasks/[\w.+-]+)\.md|\w+\.(csv|parquet))"
)
#: The most files that a pull request adds, and the most bytes of one of them and of all.
MOST_FILES, MOST_FILE_BYTES, MOST_BYTES = 2_000, 2**24, 2**28

_REGULAR_FILE = "100644"
_NOTHING = "000000"


@dataclass(frozen=True)
class Change:
    """One file that a pull request adds, changes or deletes."""

    status: str
    mode: str
    blob: str
    path: str


def changes(repository: Path, base: str, head: str) -> list[Change]:
    """The files that differ between the branches' merge base and `head`.

    Raises UsageError if there are several: merging compares with all of them, so it could change
    files that are the same in `head` and in one of them.
    """
    none = "the branches have no merge base; rebase onto the base branch"
    bases = _git(repository, "merge-base", "--all", "--end-of-options", base, head, unsaid=none)
    start, *others = bases.decode().split()
    if others:
        raise UsageError(
            f"the branches have {1 + len(others)} merge bases; rebase onto the base branch"
        )
    output = _git(repository, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--full-index",
                  "--end-of-options", start, head)  # fmt: skip
    parts = output.split(b"\0")[:-1]
    changes = []
    for facts, path in zip(parts[::2], parts[1::2], strict=True):
        _, mode, _, blob, status = facts.decode("ascii").removeprefix(":").split(" ")
        changes.append(Change(status, mode, blob, path.decode("utf-8", "replace")))
    return changes


def folder_of(path: str) -> PurePosixPath | None:
    """The folder of records or tunings that a file belongs to, or None."""
    parts = PurePosixPath(path)
    if parts.is_relative_to(BOARDS):
        return BOARDS
    if parts.is_relative_to(OF_STUDIES):
        return PurePosixPath(*parts.parts[:3])
    return TUNINGS if parts.is_relative_to(TUNINGS) else None


def problems_of(changed: Sequence[Change]) -> list[str]:
    """Why these changes can't be checked as records, a line each; empty without any problem."""
    records = [change for change in changed if folder_of(change.path) is not None]
    if not records:
        tables = [c.path for c in changed if TABLES.fullmatch(c.path)]
        if tables and len(tables) == len(changed):
            return [f"{visible(tables[0], 200)}: tables follow from records and code, and change "
                    "with them"]  # fmt: skip
        return []
    problems = [problem for change in records if (problem := _problem_of(change))]
    others = [c.path for c in changed if folder_of(c.path) is None and not TABLES.fullmatch(c.path)]
    if others:
        problems.append(
            f"{visible(others[0], 200)}: submit records and other changes in separate pull requests"
            + (f" ({len(others)} such files)" if len(others) > 1 else "")
        )
    links = [c.path for c in changed if c.mode not in {_REGULAR_FILE, _NOTHING}
             and TABLES.fullmatch(c.path)]  # fmt: skip
    problems += [f"{visible(path, 200)}: it is not a regular file" for path in links]
    binary = [c.path for c in changed if c.path.endswith(".parquet") and TABLES.fullmatch(c.path)]
    problems += [
        f"{visible(path, 200)}: it is built after merging; leave it as it is on the base branch"
        for path in binary
    ]
    if len(records) > MOST_FILES:
        problems.append(f"{len(records):,} files of records; at most {MOST_FILES:,} are checked")
    return problems


def _problem_of(change: Change) -> str | None:
    """Why this file of records can't be accepted, whatever it holds."""
    path = visible(change.path, 200)
    if change.status != "A":
        return f"{path}: published records are neither edited nor deleted"
    if change.mode != _REGULAR_FILE:
        return f"{path}: it is not a regular file (git mode {change.mode})"
    inner = PurePosixPath(change.path).relative_to(folder_of(change.path) or "").parts
    if not all(is_plain_name(part) for part in PurePosixPath(change.path).parts):
        return f"{path}: its name is not plain"
    return _problem_of_place(path, folder_of(change.path), inner)


def _problem_of_place(
    path: str, folder: PurePosixPath | None, inner: tuple[str, ...]
) -> str | None:
    """Why no file may have this place below a folder of records or tunings."""
    if path.endswith(SUFFIX):
        return f"{path}: held-out evaluations are made after merging, with a salt drawn then"
    if folder == TUNINGS:
        is_tuning = len(inner) == 1 and re.fullmatch(r"[0-9a-f]{16}\.json", inner[0])
        problem = f"{path}: it is no tuning file, named by 16 hex digits of its SHA-256"
        return None if is_tuning else problem
    is_record = len(inner) == 2 and inner[0] != OBJECTS_FOLDER and is_record_name(Path(inner[1]))
    is_object = len(inner) == 3 and inner[0] == OBJECTS_FOLDER and inner[2].startswith(inner[1])
    if not is_record and not is_object:
        return f"{path}: it is neither a record nor a file that a record may name"
    return None


def copy_records(repository: Path, changed: Sequence[Change], out: Path) -> list[Path]:
    """Write the added files of records to `out` from git, and return the records' paths.

    Raises UsageError for files that are too large.
    """
    total = 0
    records: list[Path] = []
    for change in changed:
        if folder_of(change.path) is None or change.status != "A":
            continue
        size = int(_git(repository, "cat-file", "-s", change.blob))
        total += size
        if size > MOST_FILE_BYTES or total > MOST_BYTES:
            raise UsageError(
                f"{change.path}: too large; a file may have {MOST_FILE_BYTES:,} bytes, and all "
                f"files together {MOST_BYTES:,}"
            )
        path = out / change.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_git(repository, "cat-file", "blob", change.blob))
        if is_record_name(path):
            records.append(path)
    return records


def copy_shared_files(repository: Path, base: str, out: Path, records: Sequence[Path]) -> None:
    """Write the files that sound records share with published ones, as they are at `base`."""
    for path, record in sound_records(records, lambda line: None):
        for reference in record.files():
            target = path.parents[1] / reference.name
            name = target.relative_to(out).as_posix()
            if target.exists() or not _git(repository, "ls-tree", "--full-tree", base, "--", name):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_git(repository, "cat-file", "blob", f"{base}:{name}"))


def file_problems(folder: Path, records: Sequence[Path]) -> Iterator[str]:
    """A line for each record of `folder` that is refused, and for each file that none names."""
    named: set[Path] = set(records)
    for path in records:
        try:
            record = read_record(path)
            require_place(path, record)
            named |= {path.parents[1] / reference.name for reference in record.files()}
            require_harmless(record)
            require_few_numbers(record)
            if is_retrained(record):
                raise RecordError("its proof says retrained, which only maintainers may write")
            if record.tuning is not None:
                file = folder / LEADERBOARDS / tuning_path(record.tuning)
                is_same = file.is_file() and file.read_bytes() == tuning_bytes(record.tuning)
                named |= {file} if is_same else set()
        except Exception as error:
            yield problem_with(path.relative_to(folder), error)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in named:
            yield f"{path.relative_to(folder).as_posix()}: no record of this pull request names it"


def check(repository: Path, base: str, head: str, out: Path) -> list[str]:
    """The problems of a pull request from `head` into `base`; copies its records to `out`.

    Raises UsageError where git knows no such commits or a file is too large.
    """
    changed = changes(repository, base, head)
    problems = problems_of(changed)
    if problems:
        return problems
    records = copy_records(repository, changed, out)
    problems = list(file_problems(out, records))
    copy_shared_files(repository, base, out, records)
    return problems


def _git(repository: Path, *words: str, unsaid: str = "it failed") -> bytes:
    """What a command prints; raises UsageError, with what it leaves `unsaid` if it only fails."""
    done = subprocess.run(["git", "-C", repository, *words], capture_output=True, check=False)
    if done.returncode:
        reason = visible(" ".join(done.stderr.decode("utf-8", "replace").split()), 300)
        raise UsageError(f"git {words[0]}: {reason or unsaid}")
    return done.stdout


def main() -> None:
    """Print the problems of a pull request, and exit with 2 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m iclbench.leaderboards.pull_request")
    parser.add_argument("base", help="commit of the base branch, which is checked out")
    parser.add_argument("head", help="last commit of the pull request")
    parser.add_argument("out", type=Path, help="new folder for its records")
    options = parser.parse_args()
    try:
        if not is_free(options.out):
            raise UsageError(f"{options.out} is not a new folder")
        problems = check(Path.cwd(), options.base, options.head, options.out)
    except UsageError as error:
        problems = [str(error)]
    except OSError as error:
        problems = [f"{error.filename or options.out}: {error.strerror}"]
    for problem in problems:
        print(f"refused: {problem}")
    sys.exit(2 if problems else 0)


if __name__ == "__main__":
    main()
