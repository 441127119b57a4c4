"""The task `word-problem`: the products of a word's elements in a finite group."""

from __future__ import annotations

import math

import torch
from pydantic import Field, field_validator
from torch import Tensor

from iclbench import (
    Batch,
    Draws,
    PooledConfig,
    Random,
    Shift,
    Signature,
    Text,
    TokenTask,
)

from .groups import order
from .products import prefix_products
from .recipes import PAPER, QUICK, SMOKE


class WordConfig(PooledConfig):
    """The group, and the length of words."""

    group: str = Field(
        "parity",
        description="parity, s<n>, a<n>, z<n>, or a product of them such as a4xz5; no "
        "constant-depth circuit of threshold gates is known for s5 and a5",
    )
    length: int = Field(32, ge=2, description="k, number of group elements in a word in training")

    @field_validator("group")
    @classmethod
    def _has_several_elements(cls, group: str) -> str:
        if order(group) == 1:
            raise ValueError(f"{group} has one element, so every product is the same")
        return group


class WordProblem(TokenTask[WordConfig]):
    """g₁ g₂ … g_k, uniform elements of a group; predict g₁⋯g_t at every position t.

    `accuracy` and `nll` are means over the positions, `last_accuracy` is that of the whole word.
    """

    name = "word-problem"
    version = 1
    Config = WordConfig
    fractions = frozenset({"accuracy", "last_accuracy"})
    recipes = {"smoke": SMOKE, "quick": QUICK, "paper": PAPER}

    @property
    def title(self) -> str:
        """The group and the length."""
        return f"word-problem: {self.config.group}, {self.config.length} elements"

    @property
    def signature(self) -> Signature:
        """k ids, read at every position."""
        size = order(self.config.group)
        return Signature(
            prompt=Text,
            target="token",
            length=self.config.length,
            input_width=0,
            output_width=size,
            readout=tuple(range(self.config.length)),
            # Later elements do not tell a product, but a model that sees all of them at every
            # position would solve another problem.
            causal=True,
            vocabulary=size,
        )

    @property
    def shifts(self) -> dict[str, Shift]:
        """Words of two, three and four times the length."""
        length = self.config.length
        return {
            f"length-{k}x": Shift(f"words of {k * length} elements", {"length": k * length})
            for k in (2, 3, 4)
        }

    def draw(self, random: Random) -> Draws:
        """elements (rows, k)."""
        size, length = order(self.config.group), self.config.length
        return {"elements": random.integers("element", size, length)}

    def arrange(self, draws: Draws) -> Batch:
        """Words, and the products of their prefixes."""
        elements = draws["elements"]
        return Batch(Text(elements), prefix_products(elements, self.config.group))

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, nll, and last_accuracy, at the last position."""
        last = batch._replace(target=batch.target[:, -1:])
        return {
            **super().metrics(prediction, batch),
            "last_accuracy": super().metrics(prediction[:, -1:], last)["accuracy"],
        }

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """Guessing among all elements."""
        size = order(self.config.group)
        guess = torch.full((len(batch.target),), 1.0 / size, dtype=torch.float64)
        nll = torch.full_like(guess, math.log(size))
        return {"accuracy": guess, "nll": nll, "last_accuracy": guess}

    def floor(self, batch: Batch, context: object) -> dict[str, Tensor]:
        """Accuracy 1 and nll 0."""
        ones = torch.ones(len(batch.target), dtype=torch.float64)
        return {"accuracy": ones, "nll": torch.zeros_like(ones), "last_accuracy": ones}
