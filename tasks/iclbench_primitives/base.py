"""What the primitives share: Gaussian sequences u (N, D), and a function of u for every row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, TypeVar

from pydantic import Field
from torch import Tensor
from torch.nn.functional import mse_loss

from iclbench import (
    Batch,
    Draws,
    FloorKind,
    Primary,
    Random,
    Recipe,
    Sequence,
    Signature,
    Task,
    TaskConfig,
)


class PrimitiveConfig(TaskConfig):
    """The size of the sequence (Liu et al., D.2.3)."""

    dim: int = Field(20, ge=1, description="D, width of a row")
    length: int = Field(40, ge=1, description="N, number of rows of the sequence")


PAPER = Recipe(
    steps=1_000_000,
    batch=256,
    learning_rate=1e-3,
    schedule="step",
    decay_every=10_000,
    decay=0.9,
)
"""Table D.1 of the least-squares paper."""

ConfigT = TypeVar("ConfigT", bound=PrimitiveConfig)


class Primitive(Task[ConfigT]):
    """f(u) at every row of u (N, D), whose entries are N(0, 1) (Liu et al., D.2.3 and D.3)."""

    recipes: ClassVar[Mapping[str, Recipe]] = {"paper": PAPER}
    stream = "primitives evaluation"

    @property
    def floor_kind(self) -> FloorKind:
        """`exact`: f of the rounded sequence, rounded to the dtype of the run."""
        return "exact"

    @property
    def primary(self) -> Primary:
        """The mean squared error over rows and outputs."""
        return Primary("squared_error")

    @property
    @abstractmethod
    def outputs(self) -> int:
        """The width of f(u)."""

    @abstractmethod
    def function(self, u: Tensor) -> Tensor:
        """f(u) (B, N, outputs) of u (B, N, D)."""

    @property
    def signature(self) -> Signature:
        """N tokens of width D, read at every token."""
        c = self.config
        return Signature(
            prompt=Sequence,
            target="positions",
            length=c.length,
            input_width=c.dim,
            output_width=self.outputs,
            # A primitive is a map of sequences: the loss covers every row (D.2.3).
            readout=tuple(range(c.length)),
            shapes={"tokens": (c.length, c.dim)},
        )

    def draw(self, random: Random) -> Draws:
        """u (B, N, D)."""
        # Rows are N(0, I) (D.3).
        return {"u": random.normal("u", self.config.length, self.config.dim)}

    def arrange(self, draws: Draws) -> Batch:
        """The sequence, and f of it."""
        # In evaluation u is rounded already, so the target is f of what the model sees.
        return Batch(Sequence(draws["u"]), self.function(draws["u"]))

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean squared error of each sequence, (B,)."""
        return mse_loss(prediction, target, reduction="none").mean(dim=(1, 2))

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """squared_error, (B,)."""
        return {"squared_error": self.loss(prediction, batch.target)}
