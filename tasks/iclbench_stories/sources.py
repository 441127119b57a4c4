"""Sources of stories: the tales in this package, a seed, or what `datasets` reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iclbench import UsageError, file_digest

from .config import TEXT
from .generator import generated_stories
from .tales import IDS, Tales
from .vocabulary import Vocabulary

#: The paper's two data sets, by their names on the hub.
HUB = {
    "tinystories": "roneneldan/TinyStories",
    "children-stories": "ajibawa-2023/Children-Stories-Collection",
}
TALES = "tales"
GENERATED = "generated"
#: Builders of `datasets`, by a file's suffix.
BUILDERS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".txt": "text"}
#: Separates the stories of a text file, as in the files of TinyStories.
SEPARATOR = "<|endoftext|>"
#: Number of generated stories.
GENERATED_STORIES = 4000
BATCH = 1000


class Source:
    """Texts in a fixed order; `identity` names their content, or a fixed revision of it."""

    #: Whether the source comes with `held_out` texts.
    has_split = False

    def __init__(self, name: str, identity: str) -> None:
        self.name, self.identity = name, identity

    def texts(self) -> Iterator[list[str]]:
        """Batches of texts; raises UsageError if they are not available."""
        raise NotImplementedError

    def held_out(self) -> list[str]:
        """The held-out texts of a source that comes with a split."""
        raise NotImplementedError

    def vocabulary(self, size: int) -> Vocabulary | None:
        """The BPE that comes with the source, with its first `size` ids."""
        return None


class Packaged(Source):
    """The tales in this package, with their split and their BPE."""

    has_split = True

    def __init__(self) -> None:
        self.tales = Tales()
        super().__init__(TALES, f"tales/{self.tales.sha256[IDS]}")

    def texts(self) -> Iterator[list[str]]:
        """One batch."""
        yield self.tales.texts

    def held_out(self) -> list[str]:
        """The held-out tales."""
        return self.tales.held_out

    def vocabulary(self, size: int) -> Vocabulary:
        """The BPE of the training tales; raises UsageError for too many ids."""
        return self.tales.vocabulary(size)


class Generated(Source):
    """Stories from `task_seed`."""

    def __init__(self, seed: int) -> None:
        super().__init__(GENERATED, f"generated/1/{GENERATED_STORIES}/{seed}")
        self.seed = seed

        self.stories: list[str] = []

    def texts(self) -> Iterator[list[str]]:
        """One batch."""
        self.stories = self.stories or generated_stories(GENERATED_STORIES, self.seed)
        yield self.stories


class Files(Source):
    """Parquet, JSON lines or text files: a single one, or a folder of them."""

    def __init__(self, path: Path, column: str, cache: Path) -> None:
        paths = [path] if path.is_file() else sorted(path.rglob("[!.]*"))
        self.files = [p for p in paths if p.suffix in BUILDERS and p.is_file()]
        if not self.files:
            raise UsageError(
                f"stories: {path} has no file that ends in {', '.join(BUILDERS)}; give data=PATH "
                "of such a file or a folder of them"
            )
        # The same bytes are other stories to another reader.
        contents = [f"{BUILDERS[file.suffix]}-{file_digest(file)}" for file in self.files]
        super().__init__(str(path), "/".join(["files", *contents]))
        self.column, self.cache = column, cache

    def texts(self) -> Iterator[list[str]]:
        """The stories of each file, in the order of the files' names."""
        for file in self.files:
            options: dict[str, Any] = {"data_files": str(file), "split": "train"}
            builder = BUILDERS[file.suffix]
            if builder == "text":
                options["sample_by"] = "document"
            loaded = _load(str(file), builder, cache_dir=str(self.cache), **options)
            column = TEXT if builder == "text" else self.column
            for batch in _column(loaded, column, str(file)):
                if builder == "text":
                    yield [part for text in batch for part in text.split(SEPARATOR)]
                else:
                    yield batch


class Hub(Source):
    """All splits of a data set on the hub, at a revision or the newest."""

    def __init__(self, name: str, column: str, revision: str | None) -> None:
        super().__init__(name, f"hub/{name}/{revision or 'newest'}")
        self.column, self.revision = column, revision

    def texts(self) -> Iterator[list[str]]:
        """The stories of each split."""
        splits = _load(self.name, self.name, revision=self.revision)
        for split in sorted(splits):
            yield from _column(splits[split], self.column, self.name)


def find_sources(
    data: str, column: str, revision: str | None, seed: int, cache: Path
) -> list[Source]:
    """The sources named by `data`, joined by `+`; raises UsageError for an unknown name."""
    sources: list[Source] = []
    for name in data.split("+"):
        if not name:
            raise UsageError(f"stories: data={data!r} names nothing before or after a +")
        if name == TALES:
            sources.append(Packaged())
        elif name == GENERATED:
            sources.append(Generated(seed))
        elif name in HUB:
            sources.append(Hub(HUB[name], column, revision))
        elif Path(name).exists():
            sources.append(Files(Path(name), column, cache))
        elif _may_be_on_the_hub(name):
            sources.append(Hub(name, column, revision))
        else:
            known = ", ".join([TALES, GENERATED, *HUB])
            raise UsageError(
                f"stories: unknown data {name!r}; use {known}, a data set on the hub (owner/name), "
                "or a path"
            )
    if revision is not None and not any(isinstance(source, Hub) for source in sources):
        raise UsageError(f"stories: data={data} is not on the hub; leave revision out")
    if column != TEXT and not any(isinstance(source, Hub | Files) for source in sources):
        raise UsageError(f"stories: data={data} has no columns; leave column out")
    return sources


def _may_be_on_the_hub(name: str) -> bool:
    """Whether it is owner/name, and not a file."""
    return re.fullmatch(r"\w[\w.-]*/[\w.-]+", name) is not None and not Path(name).suffix


def import_datasets() -> Any:
    """`datasets` without its progress bars; it takes a second to import."""
    import datasets

    datasets.disable_progress_bars()
    return datasets


def _load(name: str, *words: Any, **options: Any) -> Any:
    datasets = import_datasets()
    try:
        return datasets.load_dataset(*words, **options)
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)[:160]
        if "data_files" in options:
            cause = getattr(error, "__cause__", None)
            reason = next(iter(str(cause or error).strip().splitlines()), reason)[:160]
            raise UsageError(f"stories: {name} can't be read: {reason}") from None
        raise UsageError(
            f"stories: {name} can't be loaded from the hub ({reason}); check its name and the "
            "network, or give a local copy by --task-args data=PATH"
        ) from None


def _column(loaded: Any, column: str, name: str) -> Iterator[list[str]]:
    if column not in loaded.column_names:
        has: Sequence[str] = loaded.column_names
        raise UsageError(
            f"stories: {name} has no column {column!r}; it has {', '.join(has)}: set column=NAME"
        )
    for start in range(0, len(loaded), BATCH):
        batch = loaded[start : start + BATCH][column]
        if not all(text is None or isinstance(text, str) for text in batch):
            raise UsageError(f"stories: the column {column!r} of {name} does not hold text")
        yield [text or "" for text in batch]
