"""Extraction in batches, with parts on disk, so that a killed run loses only seconds."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from iclbench import UsageError, digest_of, philox, write_atomically

from .backbones import Backbone
from .sources import Source
from .store import FILE, About, read_features, write_features

#: Unfinished work in the folder of features.
PARTS = "parts"
Reporter = Callable[[int, int], None]


@dataclass(frozen=True)
class Extraction:
    """One extraction: source, backbone, folder and settings."""

    source: Source
    backbone: Backbone
    out: Path
    batch: int = 64
    per_class: int | None = None  # only the first images of each class
    project: int | None = None  # dimensions of a random projection
    dtype: torch.dtype = torch.float16
    checkpoint_seconds: float = 30.0

    def rows(self) -> np.ndarray:
        """The selected images, as rows of the source."""
        labels = self.source.labels
        if self.per_class is None:
            return np.arange(len(labels))
        order = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[order], np.arange(len(self.source.classes)))
        rank = np.empty(len(labels), dtype=np.int64)
        rank[order] = np.arange(len(labels)) - starts[labels[order]]
        return np.flatnonzero(rank < self.per_class)

    def plan(self) -> str:
        """A digest of everything that the features depend on, except the pixels."""
        source, backbone = self.source, self.backbone
        return digest_of(
            [source.data, source.identity, source.classes, self.rows().tolist(), backbone.name,
             backbone.weights_sha256, self.batch, self.project, str(self.dtype)]
        )  # fmt: skip

    def run(self, report: Reporter = lambda done, total: None, force: bool = False) -> str:
        """Extract what is missing and write the file; returns its SHA-256.

        Raises UsageError if features are not finite, or if the folder holds other features.
        """
        self._prepare(force)
        rows = self.rows()
        done, parts = self._finished()
        report(done, len(rows))
        pending: list[tuple[Tensor, list[str]]] = []
        start, saved = done, time.monotonic()
        for first in range(done, len(rows), self.batch):
            chosen = rows[first : first + self.batch].tolist()
            pending.append(self._batch(chosen))
            last = first + len(chosen) == len(rows)
            if last or time.monotonic() - saved >= self.checkpoint_seconds:
                parts.append(self._keep(start, pending))
                start, pending, saved = first + len(chosen), [], time.monotonic()
            report(first + len(chosen), len(rows))
        return self._finish(rows, parts)

    def _prepare(self, force: bool) -> None:
        """Refuse to mix with another extraction; with `force`, delete it."""
        folder, plan = self.out / PARTS, json.dumps(self.plan()).encode()
        if not len(self.rows()):
            raise UsageError(f"{self.source.data} has no images")
        if force:
            shutil.rmtree(folder, ignore_errors=True)
        elif (self.out / FILE).exists():
            raise UsageError(f"{self.out} holds features already; --force extracts them again")
        noted = folder / "plan.json"
        if noted.exists() and noted.read_bytes() != plan:
            raise UsageError(f"{self.out} holds parts of another extraction; --force starts afresh")
        write_atomically(noted, plan)

    def _batch(self, rows: list[int]) -> tuple[Tensor, list[str]]:
        """Checked features of some images, and the SHA-256 of each image's pixels."""
        images = self.source.images(rows)
        digests = [
            hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()
            for image in images
        ]
        features = self.backbone(images)
        if self.project is not None:
            features = (features.double() @ projection(features.shape[1], self.project)).float()
        stored = features.to(self.dtype)
        for row, finite in zip(rows, torch.isfinite(stored).all(dim=1).tolist(), strict=True):
            if not finite:
                hint = "" if self.dtype == torch.float32 else f" in {self.dtype}; try float32"
                hint = hint.replace("torch.", "")
                raise UsageError(f"{self.backbone.name}: features of image {row} are not "
                                 f"finite{hint}")  # fmt: skip
        return stored, digests

    def _keep(self, start: int, pending: list[tuple[Tensor, list[str]]]) -> Path:
        """Write the pending batches as one part, named by its first image."""
        features = torch.cat([part for part, _ in pending])
        digests = [digest for _, batch in pending for digest in batch]
        path = self.out / PARTS / f"{start:09d}.safetensors"
        about = {"digests": json.dumps(digests)}
        write_atomically(path, save({"features": features}, metadata=about))
        return path

    def _finished(self) -> tuple[int, list[Path]]:
        """The number of finished images, and the parts that hold them, in order."""
        done, parts = 0, []
        for path in sorted((self.out / PARTS).glob("*.safetensors")):
            if path.stem != f"{done:09d}":
                break
            parts.append(path)
            done += len(_read_part(path)[0])
        return done, parts

    def _finish(self, rows: np.ndarray, parts: list[Path]) -> str:
        read = [_read_part(path) for path in parts]
        features = torch.cat([part for part, _ in read])
        digests = [digest for _, part in read for digest in part]
        labels = torch.from_numpy(self.source.labels[rows])
        about = About(
            data=self.source.data,
            licence=self.source.licence,
            images_sha256=digest_of(digests),
            backbone=self.backbone.name,
            weights_sha256=self.backbone.weights_sha256,
            projection=None if self.project is None else f"random, to {self.project}",
            classes=self.source.classes,
            groups=self.source.groups,
            images=len(features),
            width=features.shape[1],
        )
        sha256 = write_features(self.out, features, labels, about)
        read_features(self.out)
        shutil.rmtree(self.out / PARTS)
        return sha256


def _read_part(path: Path) -> tuple[Tensor, list[str]]:
    try:
        with safe_open(path, framework="pt") as file:
            digests = json.loads(file.metadata()["digests"])
            return file.get_tensor("features"), digests
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise UsageError(f"{path} can't be read ({error}); --force starts afresh") from None


def projection(width: int, dim: int) -> Tensor:
    """A random matrix (width, dim) that keeps squared distances on average, float64."""
    drawn = philox("imagenet projection", width, dim).standard_normal((width, dim))
    return torch.from_numpy(drawn / math.sqrt(dim))
