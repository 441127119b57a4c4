"""Images of a data set on the Hugging Face hub, or in Parquet or Arrow files, by `datasets`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclbench import UsageError

from .sources import Source

if TYPE_CHECKING:
    from PIL.Image import Image

#: Short names of data sets on the hub.
SHORT = {"imagenet-1k": "ILSVRC/imagenet-1k"}


class Hub(Source):
    """A split of a data set with one column of images and one of class labels."""

    def __init__(self, data: str, split: str) -> None:
        """Load the split; raises UsageError if that fails or it lacks images or classes."""
        name = SHORT.get(data, data)
        self.rows = _load(data, name, split)
        images, labels = _columns(self.rows.features, name)
        self.column = images
        self.classes = tuple(str(n) for n in self.rows.features[labels].names)
        self.labels = np.asarray(self.rows[labels], dtype=np.int64)
        if len(self.labels) and self.labels.min() < 0:
            raise UsageError(f"--data {data}: split {split!r} has images without a class")
        self.data = f"{Path(name).name if Path(name).is_dir() else name} ({split})"
        self.identity = str(self.rows._fingerprint)

    def images(self, rows: Sequence[int]) -> list[Image]:
        """See `Source.images`."""
        try:
            return [image.convert("RGB") for image in self.rows[list(rows)][self.column]]
        except Exception as error:
            first, last = min(rows), max(rows)
            raise UsageError(
                f"an image of {self.data} between {first} and {last} can't be read: {_line(error)}"
            ) from None


def _load(data: str, name: str, split: str) -> Any:
    import datasets

    try:
        # It warns at every attempt, and then raises the error reported below.
        from huggingface_hub.utils import logging

        logging.set_verbosity_error()
    except ImportError:
        pass
    try:
        return datasets.load_dataset(name, split=split)
    except Exception as error:
        raise UsageError(
            f"--data {data}: there is no such folder, and {name!r} with the split {split!r} can't "
            f"be loaded from the hub: {_line(error)}"
        ) from None


def _columns(features: Any, name: str) -> tuple[str, str]:
    """The names of the columns of images and of class labels."""
    kinds = {column: type(kind).__name__ for column, kind in features.items()}
    names = []
    for kind in ("Image", "ClassLabel"):
        columns = [column for column, k in kinds.items() if k == kind]
        if len(columns) != 1:
            listed = ", ".join(f"{c} ({k})" for c, k in kinds.items())
            raise UsageError(f"{name} needs one column of {kind}; it has {listed}")
        names.append(columns[0])
    return names[0], names[1]


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
