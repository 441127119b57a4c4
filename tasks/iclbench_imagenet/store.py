"""A folder of features: one safetensors file whose header says where they come from."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from iclbench import Config, UsageError, write_atomically

#: Name of the file in a folder of features.
FILE = "features.safetensors"
FORMAT = 1


class About(Config):
    """Where features come from; the header of the file."""

    format: int = FORMAT
    data: str
    licence: str | None = None
    images_sha256: str
    backbone: str
    weights_sha256: str
    projection: str | None = None
    classes: tuple[str, ...]
    #: The family of each class, which a split keeps on one side; null: each class is its own.
    groups: tuple[str, ...] | None = None
    images: int
    width: int


@dataclass(frozen=True)
class Features:
    """Features (n, d), labels (n,) int64 in [0, classes), and where they come from."""

    features: Tensor
    labels: Tensor
    about: About
    sha256: str  # of the file


def write_features(folder: Path, features: Tensor, labels: Tensor, about: About) -> str:
    """Write the file atomically; the same content gives the same bytes. Returns its SHA-256."""
    tensors = {"features": features.contiguous(), "labels": labels.to(torch.int32)}
    # One key only: the order of several keys is not fixed.
    data = save(tensors, metadata={"iclbench": json.dumps(about.model_dump(mode="json"))})
    write_atomically(folder / FILE, data)
    return hashlib.sha256(data).hexdigest()


def read_features(folder: Path) -> Features:
    """The features in a folder; raises UsageError if it holds none or they are damaged."""
    path = folder / FILE
    if not folder.is_dir():
        raise UsageError(f"there is no folder of features {folder}; `iclbench features` makes one")
    try:
        state = path.stat()
    except OSError:
        raise UsageError(f"{folder} holds no {FILE}; `iclbench features` makes one") from None
    return _read(path.resolve(), state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=2)
def _read(path: Path, changed: int, size: int) -> Features:
    """Read the file, again only when it has changed."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        about = About.model_validate(json.loads(header["__metadata__"]["iclbench"]))
        tensors = load(data)
        features, labels = tensors["features"], tensors["labels"].long()
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{path} is not a file of features, or is damaged: {reason}") from None
    problem = _problem(features, labels, about)
    if problem is not None:
        raise UsageError(f"{path}: {problem}")
    return Features(features, labels, about, hashlib.sha256(data).hexdigest())


def _problem(features: Tensor, labels: Tensor, about: About) -> str | None:
    """What is wrong with the content, or None."""
    shape, count = tuple(features.shape), len(about.classes)
    if about.format != FORMAT:
        return f"it has format {about.format}, not {FORMAT}"
    if shape != (about.images, about.width):
        return f"features are {shape}, not ({about.images}, {about.width}) as the header says"
    if tuple(labels.shape) != (about.images,):
        return f"labels are {tuple(labels.shape)}, not ({about.images},)"
    wrong = labels[(labels < 0) | (labels >= count)]
    if len(wrong):
        return f"label {int(wrong[0])} is out of range: there are {count} classes"
    return _class_problem(about) or _not_finite(features)


def _class_problem(about: About) -> str | None:
    doubled = sorted({name for name in about.classes if about.classes.count(name) > 1})
    if doubled:
        return f"two classes are called {doubled[0]!r}, so one could be in both halves"
    if about.groups is not None and len(about.groups) != len(about.classes):
        return f"it has {len(about.groups)} groups for {len(about.classes)} classes"
    return None


def _not_finite(features: Tensor) -> str | None:
    for start in range(0, len(features), 2**16):
        finite = torch.isfinite(features[start : start + 2**16]).all(dim=1)
        if not finite.all():
            return f"features of image {start + int((~finite).nonzero()[0])} are not finite"
    return None


def summary(features: Features) -> dict[str, Any]:
    """The header as JSON with the file's SHA-256, without the classes and their groups."""
    about = features.about.model_dump(mode="json", exclude={"classes", "groups", "format"})
    return {**about, "sha256": features.sha256}
