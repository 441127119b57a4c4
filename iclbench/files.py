"""Files: writing files and folders whole or not at all, digests, and names of folders."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from os import PathLike
from pathlib import Path
from typing import Any

from .api.errors import RecordError, UsageError
from .api.names import content_problem, visible

#: The published leaderboards in a clone, and their folders: records, and those of each study.
LEADERBOARDS, RECORDS, STUDIES = "leaderboards", "records", "studies"
#: How the names of the temporary folders of `staged` start.
STAGING = ".iclbench-new-"
#: One that is older was left by a process that was killed, in seconds.
STALE = 86400.0
#: The most bytes of a TOML file.
MOST_TOML_BYTES = 2**20


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to a temporary file and rename it, so that `path` is never partial.

    An OSError names `path`.
    """
    with _written_beside(path, data) as temporary:
        temporary.replace(path)


def write_first(path: Path, data: bytes) -> bool:
    """Write `data` as `write_atomically` does unless there is a file; returns whether it did.

    Of several processes, one is the first. Without hard links, a file system may let several be
    the first if they write in the same moment; the last one's file then stays.
    """
    with _written_beside(path, data) as temporary:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
        except OSError:
            if path.exists():
                return False
            temporary.replace(path)
        return True


def unfinished(path: Path) -> Iterator[Path]:
    """The temporary files of `path` that processes left which were killed."""
    return path.parent.glob(f".{path.name}.*.tmp")


@contextmanager
def _written_beside(path: Path, data: bytes) -> Iterator[Path]:
    """Give the block a temporary file with `data` in the folder of `path`, as `unfinished` has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{_new_name()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # of a folder that can't be written
            temporary.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that a user asked for; raises UsageError if it can't be written."""
    try:
        write_atomically(path, data)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror or error}") from None


def _new_name() -> str:
    """A name that no other thread, process or machine that shares the files has."""
    return secrets.token_hex(8)


@contextmanager
def removed_if_empty(folder: Path) -> Iterator[None]:
    """Remove `folder` and its parents at the end of the block if it made them and they are empty.

    A request that is refused leaves no folder that looks like results.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    finally:
        with suppress(OSError):  # it holds something, or was never made
            for path in new:
                path.rmdir()


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Give the block a new folder, whose files replace those of `folder` at its end.

    If the block fails, for example because the disk is full, `folder` stays as it was. Its other
    files always stay. Raises UsageError where a file can't be written, or read within the block.
    """
    with removed_if_empty(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remove_stale(folder)
            # Within the folder, since a rename doesn't leave a file system.
            new = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
        except OSError as error:
            raise UsageError(f"{folder} can't be written: {error.strerror}") from None
        state = "is unchanged"
        try:
            yield new
            files = [path.relative_to(new) for path in sorted(new.rglob("*")) if path.is_file()]
            # What needs room on the disk comes first.
            for parent in {(folder / name).parent for name in files}:
                parent.mkdir(parents=True, exist_ok=True)
            state = "is partly old, until the same command succeeds"
            for name in files:
                (new / name).replace(folder / name)
        except OSError as error:
            name, reason = error.filename, error.strerror
            if isinstance(name, str) and not Path(name).is_relative_to(folder):
                raise UsageError(f"{name}: {reason}; {folder} {state}") from None
            raise UsageError(f"{folder} can't be written: {reason}; it {state}") from None
        finally:
            shutil.rmtree(new, ignore_errors=True)


def is_free(folder: Path) -> bool:
    """Whether a folder is missing, or holds nothing but what a killed process had staged."""
    if not folder.exists():
        return True
    return folder.is_dir() and all(path.name.startswith(STAGING) for path in folder.iterdir())


def path_of(text: str | PathLike[str]) -> Path:
    """A path as a user writes it, with ~; raises UsageError for an unknown user, or no path."""
    try:
        return Path(text).expanduser()
    except TypeError:
        kind = type(text).__name__
        raise UsageError(f"{str(text)[:100]!r} is of type {kind}, not a path") from None
    except RuntimeError:
        raise UsageError(f"{text}: there is no such user") from None


def nearest_existing(path: Path) -> Path:
    """The path itself, or the nearest of its parents that exists."""
    return next(p for p in (path, *path.absolute().parents) if p.exists())


def remove_stale(folder: Path) -> None:
    """Remove what processes that were killed more than a day ago had staged in a folder."""
    for path in folder.glob(f"{STAGING}*"):
        with suppress(OSError):  # another process removes it too
            if time.time() - path.stat().st_mtime > STALE:
                shutil.rmtree(path, ignore_errors=True)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal digits; raises RecordError if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}") from None


def source_digest(files: Iterable[Path], root: Path) -> str:
    """SHA-256 of the contents of files and of their paths below `root`, in any order."""
    digest = hashlib.sha256()
    for file in sorted(set(files)):
        name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        content = file.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def digest_of_module(name: str) -> str:
    """`source_digest` of an imported module, or of all modules of a package."""
    module = sys.modules[name]
    file = getattr(module, "__file__", None)
    files = [Path(file)] if file else []
    for folder in getattr(module, "__path__", ()):
        files += Path(folder).rglob("*.py")
    return source_digest(files, Path(file).parent if file else Path())


def require_writable(folder: Path) -> None:
    """Create `folder` if it is missing; raises UsageError if it can't be written."""
    probe = folder / f".{_new_name()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        reason = f"the output folder {folder} can't be written: {error.strerror}"
        raise UsageError(reason) from error


@contextmanager
def regular_file(path: Path, most: int, links: bool = False) -> Iterator[BufferedReader]:
    """A regular file of at most `most` bytes, open for the block.

    Raises RecordError for anything else, and where it can't be read. A link is refused, unless
    `links`. A pipe or a device is never waited for.
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    shown = visible(str(path), 300)
    try:
        if path.is_symlink() and not links:
            raise RecordError(f"{shown} is a link; it must be a regular file")
        descriptor = os.open(path, flags | (0 if links else getattr(os, "O_NOFOLLOW", 0)))
        # `open` itself refuses the descriptor of a folder, and leaves it open.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            is_folder = stat.S_ISDIR(status.st_mode)
            kind = "a folder, not a file" if is_folder else "not a regular file"
            raise RecordError(f"{shown} is {kind}")
        with os.fdopen(descriptor, "rb") as file:
            if status.st_size > most:
                raise RecordError(
                    f"{shown} has {status.st_size:,} bytes; at most {most:,} are read"
                )
            yield file
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise RecordError(f"{shown} can't be read: {reason}") from None


def read_regular_file(path: Path, most: int, links: bool = False) -> bytes:
    """The bytes of a regular file; raises RecordError as `regular_file` does."""
    with regular_file(path, most, links) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def regular_file_digest(path: Path, most: int) -> str:
    """SHA-256 of a regular file, as hexadecimal digits; raises RecordError as `regular_file`."""
    with regular_file(path, most) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, most: int) -> dict[str, Any]:
    """The object in a JSON file of at most `most` bytes, with content that a record may have.

    Raises RecordError where `regular_file` does, and ValueError for any other content, such as an
    object with a key twice: other readers of the file might take another one of the values.
    """
    text = read_regular_file(path, most).decode("utf-8")
    try:
        content = json.loads(text, object_pairs_hook=_without_repetition)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    problem = content_problem(content) if isinstance(content, dict) else "it is no JSON object"
    if problem is not None:
        raise ValueError(problem)
    return dict(content)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file of a user; raises UsageError for any other."""
    try:
        content = read_regular_file(path, MOST_TOML_BYTES, links=True)
        # Some editors write a byte order mark.
        return tomllib.loads(content.decode("utf-8-sig"))
    except RecordError as error:  # a file that can't be read
        raise UsageError(str(error)) from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {visible(str(error), 200)}") from None
