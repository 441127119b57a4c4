"""The task `imagenet`: N-way K-shot contexts from features in a folder (categorical, 6.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Categorical,
    ClassificationConfig,
    ClassificationTask,
    Signature,
    Streams,
    UsageError,
    digest_of,
    philox,
)

from .covariates import Covariates
from .picking import without_replacement
from .recipes import PAPER, QUICK
from .split import find_split
from .store import read_features, summary

#: Features that come with this package.
COMMITTED = Path(__file__).parent / "emoji"
EMOJI = "emoji"


class ImageNetConfig(ClassificationConfig):
    """Which features, and what a context is."""

    features: str = Field(
        EMOJI, description="a folder that `iclbench features` made; emoji: those of this package"
    )
    digest: str | None = Field(
        None,
        pattern="^[0-9a-f]{16}$",
        description="of features and split; filled in, and refused where it is another",
    )
    ways: int = Field(5, ge=2, description="N, classes in a context")
    shots: int = Field(10, ge=1, description="K, examples of each class in a context")
    test_classes: int | None = Field(
        None,
        ge=2,
        description="classes that only evaluation sees; null: a tenth, or 2N if that is more",
    )
    dim: int | None = Field(
        None, ge=1, description="leading principal components of the training half; null: all of x"
    )
    normalize: bool = Field(
        True, description="less the training half's mean, divided so that E‖x‖² = d there"
    )


class Draws(NamedTuple):
    """Raw draws behind n contexts of W ways, uniform on [0, 1), float64."""

    order: Tensor  # (n, classes of the half): the first W in this order are the context's
    images: Tensor  # (n, W, K + Q): picks images of each, none twice
    place: Tensor  # (n, W·K): the order of the examples
    asked: Tensor  # (n, Q): the class of each query


class Contexts(NamedTuple):
    """Images by their row of the table, and labels 0…W−1: examples, then queries."""

    images: Tensor  # (n, W·K + Q), int64
    labels: Tensor  # (n, W·K + Q), int64


class ImageNet(ClassificationTask[ImageNetConfig]):
    """Classes of images from frozen features; those of evaluation are never trained on.

    A context has N classes of its half, labelled 0…N−1 anew in a random order, K images of each,
    and queries of those classes; no image is twice in it. There is no floor: nobody knows the
    probabilities.
    """

    name = "imagenet"
    version = 1
    Config = ImageNetConfig
    recipes = {"paper": PAPER, "quick": QUICK}
    # The digest says what is in the folder, wherever that lies.
    training_only = frozenset({"pool", "features"})
    stream = "imagenet evaluation"

    def __init__(self, config: ImageNetConfig) -> None:
        """Read the features; raises UsageError where they, or the classes, do not do."""
        folder = COMMITTED if config.features == EMOJI else Path(config.features)
        self.found = read_features(folder)
        about = self.found.about
        self.split = find_split(
            folder, about.classes, config.task_seed, config.test_classes, config.ways
        )
        digest = digest_of([self.found.sha256, *self.split])[:16]
        if config.digest not in {None, digest}:
            raise UsageError(
                f"task imagenet: the features in {folder}, or their split, are others "
                f"({digest}) than those asked for ({config.digest})"
            )
        if config.dim is not None and config.dim > about.width:
            raise UsageError(f"task imagenet: dim={config.dim}: features are {about.width} wide")
        filled = {"digest": digest, "test_classes": len(self.split.test)}
        super().__init__(config.model_copy(update=filled))
        self._require_images()
        training = torch.isin(self.found.labels, torch.tensor(self.split.training))
        self.covariates = Covariates(
            self.found.features, training, dim=config.dim, normalize=config.normalize
        )
        self._pool_contexts: Contexts | None = None
        # Rows of the table, class by class.
        self._rows = self.found.labels.argsort(stable=True)
        self._sizes = torch.bincount(self.found.labels, minlength=len(about.classes))
        self._starts = self._sizes.cumsum(0) - self._sizes

    def _require_images(self) -> None:
        sizes = torch.bincount(self.found.labels, minlength=len(self.found.about.classes))
        needed = self.config.shots + self.config.queries
        fewest = int(sizes.argmin())
        if int(sizes[fewest]) < needed:
            raise UsageError(
                f"task imagenet: class {self.found.about.classes[fewest]!r} has {sizes[fewest]} "
                f"images; {self.config.shots} shots and {self.config.queries} queries "
                f"need {needed}"
            )

    @property
    def signature(self) -> Signature:
        """S = W·K + Q tokens (xᵢ, id of yᵢ), where a query has the id 0; read at the queries."""
        c = self.config
        width = self.found.about.width if c.dim is None else c.dim
        return self.signature_of(c.ways * c.shots, width, c.ways)

    @property
    def provenance(self) -> dict[str, Any]:
        """The features' header and SHA-256, and the names of the classes of both halves."""
        names = self.found.about.classes
        halves = {half: [names[i] for i in part] for half, part in self.split._asdict().items()}
        return {"features": summary(self.found), "split": halves}

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """See `Draws`."""
        return {
            name: philox(self.stream, name, seed).uniform(size=(n, *shape))
            for name, shape in self._shapes(len(self.split.test)).items()
        }

    def evaluation_set(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """One batch of n contexts of the test classes; x is rounded once."""
        raw = {k: torch.from_numpy(v) for k, v in self.evaluation_draws(n, seed).items()}
        return [self.arrange(self._pick(Draws(**raw), self.split.test), dtype)]

    def draw(self, streams: Streams) -> Contexts:
        """Contexts of the training classes."""
        shapes = self._shapes(len(self.split.training))
        raw = {k: streams.uniform(*shape) for k, shape in shapes.items()}
        return self._pick(Draws(**raw), self.split.training)

    def arrange(self, draws: Contexts, dtype: torch.dtype) -> Batch:
        """Examples and queries by their images' covariates."""
        examples = self.config.ways * self.config.shots
        x = self.covariates.table(draws.images.device, dtype)[draws.images]
        prompt = Categorical(x[:, :examples], draws.labels[:, :examples], x[:, examples:])
        return Batch(prompt, draws.labels[:, examples:])

    def pooled(self, chosen: Tensor, dtype: torch.dtype) -> Batch:
        """Those of the pool's contexts; images are kept by number, since x would be large."""
        if self._pool_contexts is None:
            self._pool_contexts = self.pool_draws()
        there = [field[chosen.cpu()].to(chosen.device) for field in self._pool_contexts]
        return self.arrange(Contexts(*there), dtype)

    def reference(self, batch: Batch) -> None:
        """None: there is no bound."""
        return

    def _shapes(self, classes: int) -> dict[str, tuple[int, ...]]:
        c = self.config
        return {
            "order": (classes,),
            "images": (c.ways, c.shots + c.queries),
            "place": (c.ways * c.shots,),
            "asked": (c.queries,),
        }

    def _pick(self, draws: Draws, half: tuple[int, ...]) -> Contexts:
        """The contexts that the draws choose among the classes of a half."""
        c, device = self.config, draws.order.device
        classes = torch.tensor(half, device=device)[draws.order.argsort(dim=1)[:, : c.ways]]
        sizes, starts, rows = (t.to(device) for t in (self._sizes, self._starts, self._rows))
        picked = without_replacement(draws.images, sizes[classes])
        images = rows[starts[classes].unsqueeze(2) + picked]
        place = draws.place.argsort(dim=1)
        shown = images[:, :, : c.shots].flatten(1).gather(1, place)
        labels = place // c.shots
        asked = (draws.asked * c.ways).long().clamp(max=c.ways - 1)
        # Query q shows image K + q of its class, so none is asked for twice or was shown.
        column = torch.arange(c.shots, c.shots + c.queries, device=device).expand_as(asked)
        each = torch.arange(len(asked), device=device).unsqueeze(1).expand_as(asked)
        queries = images[each, asked, column]
        return Contexts(torch.cat([shown, queries], 1), torch.cat([labels, asked], 1))
