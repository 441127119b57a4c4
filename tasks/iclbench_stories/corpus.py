"""The corpus: stories are filtered, split, encoded and packed once, then mapped from disk."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from iclbench import RecordError, UsageError, digest_of, file_digest, report

from .sources import Source, find_sources
from .vocabulary import END, Vocabulary, given_vocabulary, trained_vocabulary

#: Version of the packed files and of the filter: raise it when a stream changes.
FORMAT = 2
#: Share of stories that are held out, except from sources with a split.
HELD_OUT = 0.2
#: Shorter texts are left out.
FEWEST_CHARACTERS = 100
#: Traces of UTF-8 that was read in another encoding.
DAMAGE = ("\ufffd", "â€")
#: Texts between two reports without a terminal.
REPORT_EVERY = 200_000


@dataclass(frozen=True)
class Corpus:
    """Two streams of ids, END before every story and at the end.

    `starts` are the positions of END before each held-out story; `digest` names the content.
    """

    train: np.ndarray
    held_out: np.ndarray
    starts: np.ndarray
    vocabulary: Vocabulary
    digest: str
    counts: dict[str, int]


def cache_folder() -> Path:
    """The folder of packed data: $ICLBENCH_CACHE, or ~/.cache/iclbench."""
    chosen = os.environ.get("ICLBENCH_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "iclbench"


@functools.lru_cache(maxsize=4)
def open_corpus(
    *,
    data: str,
    column: str,
    revision: str | None,
    tokenizer: str,
    vocabulary: int,
    held_out: float | None,
    seed: int,
) -> Corpus:
    """The corpus with these settings, from the cache or packed now; raises UsageError.

    A single source may come with its split and its BPE; several are split and tokenized together.
    """
    cache = cache_folder() / "stories"
    sources = find_sources(data, column, revision, seed, cache / "datasets")
    single = sources[0] if len(sources) == 1 else None
    share: float | None = HELD_OUT if held_out is None else held_out
    if single and single.has_split:
        if held_out is not None:
            raise UsageError(f"stories: data={data} comes with its split; leave held_out out")
        share = None
    if tokenizer != "bpe":
        given: Vocabulary | None = given_vocabulary(tokenizer)
    else:
        given = single.vocabulary(vocabulary) if single else None
    identity = {
        "format": FORMAT,
        "sources": [source.identity for source in sources],
        "column": column,
        "tokenizer": vocabulary if given is None else digest_of(given.dump()),
        "held_out": share,
    }
    folder = cache / digest_of(identity)[:16]
    if not (folder / "about.json").is_file():
        _Packing(sources, given, vocabulary, share).write(folder)
    return _mapped(folder)


def _mapped(folder: Path) -> Corpus:
    try:
        about = json.loads((folder / "about.json").read_text("utf-8"))
        kind = np.dtype(about["dtype"])
        streams = [np.memmap(folder / f"{n}.bin", kind, "r") for n in ("train", "held_out")]
        sizes = [len(stream) for stream in streams]
        starts = np.load(folder / "starts.npy")
        text = (folder / "tokenizer.json").read_text("utf-8")
        packed, digest, counts = about["sizes"], about["digest"], about["counts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"stories: {folder} is damaged ({error}); delete it") from None
    if sizes != packed:
        raise RecordError(f"stories: {folder} is damaged (a stream was cut); delete it")
    vocabulary = Vocabulary.load(text, str(folder))
    return Corpus(streams[0], streams[1], starts, vocabulary, digest, counts)


class _Packing:
    """One packing in progress."""

    def __init__(
        self, sources: list[Source], given: Vocabulary | None, size: int, held_out: float | None
    ) -> None:
        self.sources, self.given, self.size, self.share = sources, given, size, held_out
        self.names = " and ".join(source.name for source in sources)
        self.counts = {"short": 0, "damaged": 0, "repeated": 0}

    def write(self, folder: Path) -> None:
        """Write the packed files beside `folder` and rename it, so that it is never incomplete."""
        keys = self._keys()
        held = self._held_out(keys)
        vocabulary = self.given or trained_vocabulary(self._training_texts(held), self.size)
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(".tmp", f".{folder.name}.", folder.parent))
        try:
            self._encode(temporary, vocabulary, held, len(keys))
            if folder.exists() and not (folder / "about.json").is_file():
                shutil.rmtree(folder)  # somebody has removed a part of it
            try:
                temporary.rename(folder)
            except OSError:
                # Another process may have been faster; its files are the same.
                if not (folder / "about.json").is_file():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        training, dropped = len(keys) - len(held), sum(self.counts.values())
        report(
            f"stories: prepared {self.names}: {training:,} stories to train on and {len(held):,} "
            f"held out; {dropped:,} are left out as too short, damaged or repeated"
        )

    def _stories(self) -> Iterator[list[tuple[int, str]]]:
        """Batches of the accepted stories, each with 64 bits of its hash."""
        seen: set[int] = set()
        for source in self.sources:
            for batch in source.texts():
                kept = []
                for text in batch:
                    story = text.replace(END, " ").strip()
                    key = _key(story)
                    if len(story) < FEWEST_CHARACTERS:
                        self.counts["short"] += 1
                    elif any(mark in story for mark in DAMAGE):
                        self.counts["damaged"] += 1
                    elif key in seen:
                        self.counts["repeated"] += 1
                    else:
                        seen.add(key)
                        kept.append((key, story))
                yield kept

    def _keys(self) -> np.ndarray:
        keys = [key for batch in self._shown("reading") for key, _ in batch]
        if len(keys) < 2:
            left = ", ".join(f"{n:,} {what}" for what, n in self.counts.items() if n)
            raise UsageError(
                f"stories: {self.names} holds {len(keys)} stories of {FEWEST_CHARACTERS} "
                f"characters or more{f' ({left})' if left else ''}; two are needed at least"
            )
        return np.array(keys, dtype=np.uint64)

    def _held_out(self, keys: np.ndarray) -> set[int]:
        """The source's split, or a share: the lowest hashes, so that the order is irrelevant."""
        if self.share is None:
            return {_key(text) for text in self.sources[0].held_out()}
        count = min(len(keys) - 1, max(1, round(self.share * len(keys))))
        return {int(key) for key in np.sort(keys)[:count]}

    def _training_texts(self, held: set[int]) -> Iterator[list[str]]:
        for batch in self._shown("learning the BPE"):
            yield [story for key, story in batch if key not in held]

    def _encode(self, folder: Path, vocabulary: Vocabulary, held: set[int], total: int) -> None:
        kind = np.dtype(np.uint16 if vocabulary.size <= 2**16 else np.uint32)
        end = np.array([vocabulary.end], dtype=kind)
        starts, length = [], 0
        with (
            (folder / "train.bin").open("wb") as train,
            (folder / "held_out.bin").open("wb") as out,
        ):
            for batch in self._shown("packing", total):
                for (key, _), ids in zip(
                    batch, vocabulary.encode([s for _, s in batch]), strict=True
                ):
                    packed = np.concatenate([end, np.array(ids, dtype=kind)])
                    if key in held:
                        starts.append(length)
                        length += len(packed)
                        out.write(packed.tobytes())
                    else:
                        train.write(packed.tobytes())
            train.write(end.tobytes())
            out.write(end.tobytes())
        np.save(folder / "starts.npy", np.array(starts, dtype=np.int64))
        (folder / "tokenizer.json").write_text(vocabulary.dump(), "utf-8")
        files = [folder / name for name in ("train.bin", "held_out.bin")]
        about = {
            "dtype": kind.name,
            "sizes": [file.stat().st_size // kind.itemsize for file in files],
            # The ids and their tokens: other versions of `tokenizers` write another JSON.
            "digest": digest_of([*map(file_digest, files), vocabulary.tokens()]),
            "counts": {"stories": total, "held_out": len(held), **self.counts},
        }
        (folder / "about.json").write_text(json.dumps(about), "utf-8")

    def _shown(self, what: str, total: int | None = None) -> Iterator[list[tuple[int, str]]]:
        """The stories, with a progress bar on a terminal and otherwise a line now and then."""
        self.counts.update(dict.fromkeys(self.counts, 0))
        console = Console(stderr=True)
        done = reported = 0
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            shown = bar.add_task(f"{what} {self.names}", total=total)
            for batch in self._stories():
                yield batch
                done += len(batch)
                bar.update(shown, completed=done)
                if not console.is_terminal and done - reported >= REPORT_EVERY:
                    reported = done
                    report(f"stories: {what} {self.names}: {done:,} stories")


def _key(story: str) -> int:
    return int.from_bytes(hashlib.sha256(story.encode()).digest()[:8], "big")
