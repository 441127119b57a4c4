"""The task `compression` of MAD (Poli et al. 2024)."""

from __future__ import annotations

from pydantic import Field
from torch.nn.functional import pad

from iclbench import Batch, Draws, PooledConfig, Random, Signature, Text

from .base import RecallTask, text_signature_fields
from .recipes import MAD_PAPER, MAD_QUICK, MAD_SMOKE


class CompressionConfig(PooledConfig):
    """The ids to compress."""

    vocabulary: int = Field(
        16, ge=3, description="V, number of tokens in the vocabulary, including the marker"
    )
    length: int = Field(
        32, ge=3, description="T, number of tokens in a prompt, including the marker"
    )


class Compression(RecallTask[CompressionConfig]):
    """T − 1 random tokens and a marker, id V − 1; all tokens are decoded from the marker's state.

    The model decodes that one state, as in the source: see `Signature.reads_one_state`. The
    source also scores the marker itself, which no model misses; it is not scored here.
    """

    name = "compression"
    version = 1
    Config = CompressionConfig
    recipes = {"smoke": MAD_SMOKE, "quick": MAD_QUICK, "paper": MAD_PAPER}

    @property
    def answers(self) -> int:
        """V − 1, all ids but the marker."""
        return self.config.vocabulary - 1

    @property
    def signature(self) -> Signature:
        """T ids, read T − 1 times at the last."""
        c = self.config
        return Signature(
            **text_signature_fields(c.length, c.vocabulary),
            readout=(c.length - 1,) * (c.length - 1),
        )

    def draw(self, random: Random) -> Draws:
        """ids (rows, T − 1)."""
        return {"ids": random.integers("id", self.answers, self.config.length - 1)}

    def arrange(self, draws: Draws) -> Batch:
        """The ids and the marker; the ids are the target."""
        ids = draws["ids"]
        return Batch(Text(pad(ids, (0, 1), value=self.config.vocabulary - 1)), ids)
