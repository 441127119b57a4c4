"""The split of classes into a training half and a test half."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from iclbench import UsageError, philox

from .store import About

#: Optional file in a folder of features that fixes the split by name.
FILE = "split.json"
#: The most bytes of a split.
MOST_BYTES = 2**24


class Split(NamedTuple):
    """Numbers of the classes of each half, ascending and disjoint."""

    training: tuple[int, ...]
    test: tuple[int, ...]


def find_split(folder: Path, about: About, seed: int, test: int | None, ways: int) -> Split:
    """The split in the folder, or random groups of at most `test` classes by `seed`.

    By default a tenth is for testing, or 2 · `ways` if that is more, as long as `ways` remain.
    Raises UsageError for a class that is unknown or in both halves, and for too few classes.
    """
    file, classes = folder / FILE, about.classes
    if file.exists():
        if test is not None and test != len(_names(file)["test"]):
            raise UsageError(f"test_classes={test}: {file} has another split; leave it out")
        split = _given(file, classes)
    else:
        default = min(max(2 * ways, len(classes) // 10), max(len(classes) - ways, 0))
        count = default if test is None else test
        if count > len(classes):
            raise UsageError(f"test_classes={count}: {folder} has only {len(classes)} classes")
        split = split_groups(about.groups or classes, seed, count)
    for half, members in split._asdict().items():
        if len(members) < ways:
            raise UsageError(
                f"{ways}-way contexts need {ways} classes: {len(members)} of the {len(classes)} "
                f"classes in {folder} are for {half}"
            )
    return split


def split_groups(groups: Sequence[str], seed: int, count: int) -> Split:
    """Whole groups for testing, in a random order, as long as they fit into `count` classes.

    `groups` names the group of each class. Neighbouring classes share one, so that a model is not
    tested on classes that look like those of training.
    """
    names = list(dict.fromkeys(groups))
    test: list[int] = []
    for position in philox("imagenet split", seed).permutation(len(names)):
        members = [number for number, group in enumerate(groups) if group == names[position]]
        if len(test) + len(members) <= count:
            test += members
    rest = set(range(len(groups))) - set(test)
    return Split(tuple(sorted(rest)), tuple(sorted(test)))


def _names(path: Path) -> dict[str, list[str]]:
    try:
        # A record may name any path: reading a pipe or a device might never end.
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} is not a file of at most {MOST_BYTES:,} bytes")
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} can't be read: {error}") from None
    halves = content if isinstance(content, dict) else {}
    if set(halves) != {"training", "test"} or not all(isinstance(v, list) for v in halves.values()):
        raise UsageError(f"{path} must hold two lists of names of classes, training and test")
    return halves


def _given(path: Path, classes: Sequence[str]) -> Split:
    content = _names(path)
    number = {name: index for index, name in enumerate(classes)}
    for half, names in content.items():
        for name in names:
            if not isinstance(name, str) or name not in number:
                raise UsageError(f"{path}: there is no class {name!r} for {half}")
            if names.count(name) > 1:
                raise UsageError(f"{path}: class {name!r} is twice in {half}")
    both = sorted(set(content["training"]) & set(content["test"]))
    if both:
        raise UsageError(f"{path}: class {both[0]!r} is in both halves")
    halves = {half: tuple(sorted(number[n] for n in names)) for half, names in content.items()}
    return Split(halves["training"], halves["test"])
