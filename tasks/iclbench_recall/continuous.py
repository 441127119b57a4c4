"""The task `mqar-continuous`: associative recall of vectors (Arora et al. 2023)."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Batch, Draws, PooledConfig, Random, Sequence, Signature, philox

from .base import RecallTask, distinct
from .recipes import CONTINUOUS_QUICK, MQAR_SMOKE


class ContinuousConfig(PooledConfig):
    """The vectors, and the pairs."""

    vocabulary: int = Field(
        8192, ge=4, description="V, number of vectors; the first half are keys, the others values"
    )
    dim: int = Field(64, ge=1, description="d, dimension of each key and value vector")
    pairs: int = Field(8, ge=1, description="n, number of key–value pairs")
    passes: int = Field(
        1, ge=1, description="how often the pairs are shown, each time in a new order"
    )

    @model_validator(mode="after")
    def _fits(self) -> ContinuousConfig:
        if self.pairs > self.vocabulary // 2:
            raise ValueError(
                f"vocabulary={self.vocabulary} has {self.vocabulary // 2} keys, "
                f"fewer than pairs={self.pairs}"
            )
        return self


class ContinuousMQAR(RecallTask[ContinuousConfig]):
    """Tokens (key vector; value vector), then every key again with a value of 0, in another order.

    The vectors are drawn once, from `task_seed`: N(0, 1/d), so that their norm is about 1. The
    model predicts the number of the key's value, among all V/2 values. Its read-out of numbers is
    learned, so every value must occur in training. Zoology's model returns a vector instead, and
    the value whose vector has the largest inner product with it is its answer.
    """

    name = "mqar-continuous"
    version = 1
    Config = ContinuousConfig
    recipes = {"smoke": MQAR_SMOKE, "quick": CONTINUOUS_QUICK}

    @property
    def signature(self) -> Signature:
        """(passes + 1) n tokens of 2d numbers, read at the last n."""
        c = self.config
        context, classes = c.passes * c.pairs, c.vocabulary - c.vocabulary // 2
        return Signature(
            prompt=Sequence,
            target="class",
            length=context + c.pairs,
            input_width=2 * c.dim,
            output_width=classes,
            readout=tuple(range(context, context + c.pairs)),
            classes=classes,
        )

    @property
    def answers(self) -> int:
        """V/2, all values."""
        return self.signature.classes

    @cached_property
    def vectors(self) -> Tensor:
        """The vectors (V, d), those of the keys first, float64."""
        source = philox("mqar-continuous vectors", self.config.task_seed)
        shape = (self.config.vocabulary, self.config.dim)
        return torch.from_numpy(source.standard_normal(shape)) / math.sqrt(shape[1])

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The vectors."""
        return {"vectors": self.vectors}

    def draw(self, random: Random) -> Draws:
        """keys, values (rows, n), and order (rows, passes + 1, n), uniform."""
        c = self.config
        half = c.vocabulary // 2
        return {
            "keys": distinct(random, "key", half, c.pairs),
            "values": distinct(random, "value", c.vocabulary - half, c.pairs),
            "order": random.uniform("order", c.passes + 1, c.pairs),
        }

    def arrange(self, draws: Draws) -> Batch:
        """The pairs in an order per pass, then the keys in an order of their own."""
        c, order = self.config, draws["order"]
        vectors = self.vectors.to(order)
        # Orders by passes and, last, of the queries, (rows, (passes + 1) n).
        index = order.argsort(dim=2, stable=True).flatten(1)
        keys, values = (draws[name].gather(1, index) for name in ("keys", "values"))
        context = c.passes * c.pairs
        value_vectors = vectors[c.vocabulary // 2 + values]
        value_vectors[:, context:] = 0.0
        tokens = torch.cat([vectors[keys], value_vectors], dim=2)
        return Batch(Sequence(tokens), values[:, context:])
