"""The task `memorization` of MAD (Poli et al. 2024)."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Batch, Draws, PooledConfig, Random, Signature, Text, philox

from .base import RecallTask, text_signature_fields
from .recipes import MAD_QUICK, MAD_SMOKE, MEMORIZATION_PAPER


class MemorizationConfig(PooledConfig):
    """The map, and the keys of a prompt."""

    vocabulary: int = Field(
        # Two keys: with one, there would be a single answer.
        256,
        ge=5,
        description="V, number of tokens in the vocabulary, including the insert token",
    )
    length: int = Field(32, ge=2, multiple_of=2, description="T, number of tokens in a prompt")


class Memorization(RecallTask[MemorizationConfig]):
    """Pairs (k, insert); predict the value of k at each insert token, id V − 1.

    The map from keys to different values is drawn once, from `task_seed`. No prompt shows it.
    """

    name = "memorization"
    version = 1
    Config = MemorizationConfig
    recipes = {"smoke": MAD_SMOKE, "quick": MAD_QUICK, "paper": MEMORIZATION_PAPER}

    @property
    def answers(self) -> int:
        """The number of keys: each has a value of its own."""
        return (self.config.vocabulary - 1) // 2

    @property
    def signature(self) -> Signature:
        """T ids, read at every insert."""
        c = self.config
        return Signature(
            **text_signature_fields(c.length, c.vocabulary), readout=tuple(range(1, c.length, 2))
        )

    @property
    def parameters(self) -> dict[str, Tensor]:
        """map: the value of each key, (keys,), float64."""
        # The ids without the insert id: keys first, and one value more if their number is odd.
        plain = self.config.vocabulary - 1
        order = philox("memorization map", self.config.task_seed).permutation(plain - self.answers)
        return {"map": torch.from_numpy(self.answers + order[: self.answers]).double()}

    def draw(self, random: Random) -> Draws:
        """keys (rows, T/2)."""
        return {"keys": random.integers("key", self.answers, self.config.length // 2)}

    def arrange(self, draws: Draws) -> Batch:
        """Keys and insert ids, and the values."""
        keys = draws["keys"]
        insert = torch.full_like(keys, self.config.vocabulary - 1)
        values = self.parameters["map"].long().to(keys.device)[keys]
        return Batch(Text(torch.stack([keys, insert], dim=2).flatten(1)), values)
