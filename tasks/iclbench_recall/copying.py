"""The task `selective-copying` of MAD (Poli et al. 2024)."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator

from iclbench import Batch, Draws, PooledConfig, Random, Signature, Text

from .base import RecallTask, text_signature_fields
from .recipes import MAD_PAPER, MAD_QUICK, MAD_SMOKE


class CopyingConfig(PooledConfig):
    """The ids to copy, and the blanks."""

    vocabulary: int = Field(
        # Two tokens to copy: with one, there would be a single answer.
        16,
        ge=4,
        description="V, number of tokens in the vocabulary, including the blank and the copy token",
    )
    length: int = Field(256, ge=4, description="T, number of tokens in a prompt")
    tokens: int = Field(16, ge=1, description="n, number of tokens to copy")

    @property
    def blanks(self) -> int:
        """The number of blanks among the ids."""
        return self.length - 2 * self.tokens - 1

    @model_validator(mode="after")
    def _fits(self) -> CopyingConfig:
        if self.blanks < 1:
            raise ValueError(
                f"{self.tokens} tokens, a blank, the copy id and as many blanks need "
                f"{2 * self.tokens + 2} ids, more than length={self.length}"
            )
        return self


class SelectiveCopying(RecallTask[CopyingConfig]):
    """n tokens among blanks, the copy token, then n blanks, where they are predicted in order.

    Every blank stands before a random one of the n tokens, so none follows the last, as in the
    source. The blank has id V − 2, the copy token id V − 1.
    """

    name = "selective-copying"
    version = 1
    Config = CopyingConfig
    recipes = {"smoke": MAD_SMOKE, "quick": MAD_QUICK, "paper": MAD_PAPER}

    @property
    def answers(self) -> int:
        """V − 2, the ids that are copied."""
        return self.config.vocabulary - 2

    @property
    def signature(self) -> Signature:
        """T ids, read at the last n."""
        c = self.config
        return Signature(
            **text_signature_fields(c.length, c.vocabulary),
            readout=tuple(range(c.length - c.tokens, c.length)),
        )

    def draw(self, random: Random) -> Draws:
        """ids (rows, n), and before, the id that each blank precedes (rows, blanks)."""
        c = self.config
        return {
            "ids": random.integers("id", self.answers, c.tokens),
            "before": random.integers("before", c.tokens, c.blanks),
        }

    def arrange(self, draws: Draws) -> Batch:
        """The ids among blanks, and what is to be copied."""
        c, ids = self.config, draws["ids"]
        text = ids.new_full((len(ids), c.length), c.vocabulary - 2)
        # Id i stands after i others and the blanks before ids 0 … i.
        counts = torch.nn.functional.one_hot(draws["before"], c.tokens).sum(dim=1)
        places = counts.cumsum(dim=1) + torch.arange(c.tokens, device=ids.device)
        text = text.scatter(1, places, ids)
        text[:, c.tokens + c.blanks] = c.vocabulary - 1
        return Batch(Text(text), ids)
