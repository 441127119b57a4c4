"""The task `imagenet`: W-way K-shot contexts from features in a folder (Wang et al., 6.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Categorical,
    ClassificationConfig,
    ClassificationTask,
    Draws,
    Random,
    Signature,
    UsageError,
    digest_of,
)

from .covariates import Covariates
from .picking import without_replacement
from .recipes import PAPER, QUICK
from .split import find_split
from .store import read_features, summary

#: Features that come with this package, in a folder of that name, and what boards call them.
PACKAGED = {"emoji": "emoji (stand-in)", "fashion-mnist": "Fashion-MNIST (stand-in)"}


class ImageNetConfig(ClassificationConfig):
    """The images, and the contexts."""

    images: str = Field(
        "emoji",
        description="emoji or fashion-mnist, whose features come with this package, or a folder "
        "made by `iclbench features`, for example from ImageNet",
    )
    digest: str | None = Field(
        None,
        pattern="^[0-9a-f]{16}$",
        description="digest of the features and the split; filled in if null; a different one is "
        "an error",
    )
    ways: int = Field(5, ge=2, description="W, number of classes in a context")
    shots: int = Field(10, ge=1, description="K, number of examples of each class in a context")
    test_classes: int | None = Field(
        None,
        ge=2,
        description="maximum number of classes held out for evaluation, in whole groups of similar "
        "classes; null: a tenth of all, or 2W if that is more",
    )
    dim: int | None = Field(
        None,
        ge=1,
        description="number of leading principal components of the training classes' features; "
        "null: all features",
    )
    normalize: bool = Field(
        True,
        description="subtract the mean over the training classes and scale to E‖x‖² = d on them",
    )


def folder_of(images: str) -> Path:
    """The folder with the features of these images."""
    return Path(__file__).parent / images if images in PACKAGED else Path(images)


class ImageNet(ClassificationTask[ImageNetConfig]):
    """Classes of images from frozen features; those of evaluation are never trained on.

    A context has W classes of one half, labelled 0…W−1 in a random order, K images of each, and
    queries of those classes. No image appears twice in it. There is no floor, since the true
    probabilities are unknown.
    """

    name = "imagenet"
    version = 2
    Config = ImageNetConfig
    recipes = {"paper": PAPER, "quick": QUICK}
    # The digest identifies the features, wherever their folder lies.
    training_only = frozenset({"pool", "images"})
    stream, pool_stream = "imagenet evaluation", "categorical pool"
    floor_summary = "No floor: the true probabilities are unknown."

    def __init__(self, config: ImageNetConfig) -> None:
        """Read the features; raises UsageError if they, or the classes, are unsuitable."""
        folder = folder_of(config.images)
        self.data = read_features(folder)
        about = self.data.about
        self.split = find_split(folder, about, config.task_seed, config.test_classes, config.ways)
        digest = digest_of([self.data.sha256, *self.split])[:16]
        if config.digest not in {None, digest}:
            raise UsageError(
                f"task imagenet: the features in {folder}, or their split, have the digest "
                f"{digest}, not {config.digest} as requested"
            )
        if config.dim is not None and config.dim > about.width:
            raise UsageError(f"task imagenet: dim={config.dim}: features are {about.width} wide")
        filled = {"digest": digest, "test_classes": len(self.split.test)}
        super().__init__(config.model_copy(update=filled))
        self._require_images()
        training = torch.isin(self.data.labels, torch.tensor(self.split.training))
        self.covariates = Covariates(
            self.data.features, training, dim=config.dim, normalize=config.normalize
        )
        # Rows of the table, ordered by class.
        self._rows = self.data.labels.argsort(stable=True)
        self._sizes = torch.bincount(self.data.labels, minlength=len(about.classes))
        self._starts = self._sizes.cumsum(0) - self._sizes

    def _require_images(self) -> None:
        sizes = torch.bincount(self.data.labels, minlength=len(self.data.about.classes))
        needed = self.config.shots + self.config.queries
        fewest = int(sizes.argmin())
        if int(sizes[fewest]) < needed:
            raise UsageError(
                f"task imagenet: class {self.data.about.classes[fewest]!r} has {sizes[fewest]} "
                f"images; {self.config.shots} shots and {self.config.queries} queries "
                f"need {needed}"
            )

    @property
    def title(self) -> str:
        """The images behind the features: stand-ins for ImageNet are called that."""
        return f"{self.name}: {PACKAGED.get(self.config.images, self.data.about.data)}"

    @property
    def signature(self) -> Signature:
        """S = W·K + Q tokens (xᵢ, id of yᵢ), where a query has id 0; read at the queries."""
        c = self.config
        width = self.data.about.width if c.dim is None else c.dim
        return self.signature_of(c.ways * c.shots, width, c.ways)

    @property
    def provenance(self) -> dict[str, Any]:
        """The features' header and SHA-256, and the names of the classes of both halves."""
        names = self.data.about.classes
        halves = {half: [names[i] for i in part] for half, part in self.split._asdict().items()}
        return {"features": summary(self.data), "split": halves}

    def draw(self, random: Random) -> Draws:
        """Contexts of the training or the test classes: examples, then queries.

        images (n, W·K + Q), rows of the table of features, and labels (n, W·K + Q) in 0…W−1.
        """
        c = self.config
        half = self.split.training if random.training else self.split.test
        # The first W classes of the half in a random order are the context's.
        order = random.uniform("order", len(half)).argsort(dim=1)
        classes = torch.tensor(half, device=order.device)[order[:, : c.ways]]
        uniform = random.uniform("images", c.ways, c.shots + c.queries)
        shuffled = random.uniform("place", c.ways * c.shots).argsort(dim=1)
        labels = (random.uniform("asked", c.queries) * c.ways).long().clamp(max=c.ways - 1)
        sizes, starts, rows = (t.to(order.device) for t in (self._sizes, self._starts, self._rows))
        picked = without_replacement(uniform, sizes[classes])
        images = rows[starts[classes].unsqueeze(2) + picked]
        shown = images[:, :, : c.shots].flatten(1).gather(1, shuffled)
        # Query q shows image K + q of its class, so that no image is in a context twice.
        column = torch.arange(c.shots, c.shots + c.queries, device=order.device).expand_as(labels)
        context = torch.arange(len(labels), device=order.device).unsqueeze(1).expand_as(labels)
        asked = images[context, labels, column]
        return {
            "images": torch.cat([shown, asked], 1),
            "labels": torch.cat([shuffled // c.shots, labels], 1),
        }

    def arrange(self, draws: Draws) -> Batch:
        """Examples and queries by their images' covariates in float64."""
        return self.round_and_arrange(draws, torch.float64)

    def pooled(self, chosen: Tensor, dtype: torch.dtype) -> Batch:
        """The pool keeps its images by number, because their covariates would be large."""
        draws = {name: v.to(chosen.device)[chosen] for name, v in self.pool_draws.items()}
        return self.round_and_arrange(draws, dtype)

    def round_and_arrange(self, draws: Draws, dtype: torch.dtype) -> Batch:
        """The same from a table that is rounded already, which takes half the memory."""
        examples = self.config.ways * self.config.shots
        images, labels = draws["images"], draws["labels"]
        x = self.covariates.table(images.device, dtype)[images]
        prompt = Categorical(x[:, :examples], labels[:, :examples], x[:, examples:])
        return Batch(prompt, labels[:, examples:])
