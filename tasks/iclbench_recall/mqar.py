"""The task `mqar`: multi-query associative recall (Arora et al. 2023, zoology)."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import UNASKED, Batch, Draws, PooledConfig, Random, Shift, Signature, Text

from .base import RecallTask, distinct, text_signature_fields
from .recipes import MQAR_PAPER, MQAR_QUICK, MQAR_SMOKE


class MQARConfig(PooledConfig):
    """The pairs, and where they are asked."""

    vocabulary: int = Field(
        8192,
        ge=8,
        description="V, number of tokens in the vocabulary; keys are from its lower half",
    )
    length: int = Field(64, ge=4, multiple_of=2, description="T, number of tokens in a prompt")
    pairs: int = Field(4, ge=1, description="n, number of key–value pairs")
    passes: int = Field(1, ge=1, description="how often the pairs are shown")
    power: float = Field(
        0.01,
        gt=0,
        description="a: slot j after the pairs holds a query with weight (j + 1)^(a − 1)",
    )
    random_filler: bool = Field(
        True,
        description="whether the tokens between pairs and queries are random; false: they are 0",
    )

    @property
    def shown(self) -> int:
        """The length of the pairs."""
        return 2 * self.pairs * self.passes

    @model_validator(mode="after")
    def _fits(self) -> MQARConfig:
        if self.shown + 2 * self.pairs > self.length:
            raise ValueError(
                f"{self.pairs} pairs in {self.passes} passes and their queries need "
                f"{self.shown + 2 * self.pairs} ids, more than length={self.length}"
            )
        if self.pairs >= self.vocabulary // 2:
            raise ValueError(
                f"vocabulary={self.vocabulary} has {self.vocabulary // 2 - 1} keys, "
                f"fewer than pairs={self.pairs}"
            )
        return self


class MQAR(RecallTask[MQARConfig]):
    """k₁ v₁ k₂ v₂ …, then queries: every key once more; predict its value there.

    Keys are different ids in 1 … V/2 − 1, values different ids in V/2 … V − 1. After the pairs, a
    query stands at an even offset: n slots are drawn without replacement, slot j with weight
    (j + 1)^(a − 1). No value follows its query. What is left is random, or 0.
    """

    name = "mqar"
    version = 1
    Config = MQARConfig
    recipes = {"smoke": MQAR_SMOKE, "quick": MQAR_QUICK, "paper": MQAR_PAPER}

    @property
    def signature(self) -> Signature:
        """T ids, read at every slot."""
        c = self.config
        return Signature(
            **text_signature_fields(c.length, c.vocabulary),
            readout=tuple(range(c.shown, c.length, 2)),
        )

    @property
    def most_asked(self) -> int:
        """n: each key is asked once."""
        return self.config.pairs

    @property
    def answers(self) -> int:
        """V/2, all values."""
        return self.config.vocabulary - self.config.vocabulary // 2

    @property
    def shifts(self) -> dict[str, Shift]:
        """More pairs in longer prompts: twice and four times as many."""
        c = self.config
        return {
            f"pairs-{k}x": Shift(f"{k} times as many pairs and as long a prompt", {
                "pairs": k * c.pairs, "length": k * c.length,
            })
            for k in (2, 4)
            if k * c.pairs < c.vocabulary // 2
        }  # fmt: skip

    def draw(self, random: Random) -> Draws:
        """keys, values (rows, n), slots (rows, slots), uniform, and filler."""
        c = self.config
        half = c.vocabulary // 2
        draws = {
            "keys": 1 + distinct(random, "key", half - 1, c.pairs),
            "values": half + distinct(random, "value", c.vocabulary - half, c.pairs),
            "slots": random.uniform("slots", (c.length - c.shown) // 2),
        }
        if c.random_filler:
            draws["filler"] = random.integers("filler", c.vocabulary, c.length - c.shown)
        return draws

    def arrange(self, draws: Draws) -> Batch:
        """The pairs, then the queries in their slots."""
        c, keys, values = self.config, draws["keys"], draws["values"]
        rows, slots = draws["slots"].shape
        pairs = torch.stack([keys, values], dim=2).flatten(1).repeat(1, c.passes)
        after = draws.get("filler")
        if after is None:
            after = keys.new_zeros(rows, c.length - c.shown)
        chosen = weighted_choice(draws["slots"], c.power, c.pairs)
        after = after.scatter(1, 2 * chosen, keys)
        target = keys.new_full((rows, slots), UNASKED).scatter(1, chosen, values)
        return Batch(Text(torch.cat([pairs, after], dim=1)), target)


def weighted_choice(uniform: Tensor, power: float, count: int) -> Tensor:
    """`count` of the slots j without replacement, with weights (j + 1)^(power − 1), in that order.

    Drawing one after the other is the same as taking the largest of log-weights plus Gumbel noise,
    which `uniform` (rows, slots) gives.
    """
    slots = torch.arange(1, uniform.shape[1] + 1, device=uniform.device).to(uniform)
    tiny = torch.finfo(uniform.dtype).tiny
    noise = -(-uniform.clamp(min=tiny).log()).log()
    keys = (power - 1.0) * slots.log() + noise
    return keys.argsort(dim=1, descending=True, stable=True)[:, :count]
