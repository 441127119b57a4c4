"""The tasks `in-context-recall` and `noisy-recall` of MAD (Poli et al. 2024)."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Batch, Draws, PooledConfig, Random, Signature, Text

from .base import RecallTask, text_signature_fields
from .recipes import MAD_PAPER, MAD_QUICK, MAD_SMOKE


class RecallConfig(PooledConfig):
    """The ids of keys and values, and the length."""

    vocabulary: int = Field(
        16, ge=3, description="V, number of tokens in the vocabulary, including noise tokens"
    )
    length: int = Field(
        128,
        ge=4,
        multiple_of=2,
        description="T, number of tokens in a sequence; a model sees all but the last",
    )
    noise: float = Field(0.0, ge=0, lt=1, description="f, probability that a pair is noise")
    noise_ids: int = Field(0, ge=0, description="number of noise tokens in the vocabulary")

    @property
    def plain_ids(self) -> int:
        """The number of ids of keys and values."""
        return self.vocabulary - self.noise_ids

    @model_validator(mode="after")
    def _fits(self) -> RecallConfig:
        # With one key and one value, there would be a single answer.
        if self.plain_ids < 3:
            raise ValueError(
                f"vocabulary={self.vocabulary} without noise_ids={self.noise_ids} must leave a key "
                "and two values"
            )
        if self.noise > 0 and not self.noise_ids:
            raise ValueError(f"noise={self.noise:g} needs noise_ids of 1 or more")
        return self


class NoisyConfig(RecallConfig):
    """A fifth of the pairs is noise of 16 ids."""

    vocabulary: int = Field(
        32, ge=3, description="V, number of tokens in the vocabulary, including noise tokens"
    )
    noise: float = Field(0.2, ge=0, lt=1, description="f, probability that a pair is noise")
    noise_ids: int = Field(16, ge=0, description="number of noise tokens in the vocabulary")


class InContextRecall(RecallTask[RecallConfig]):
    """Pairs (k, v) with a map from keys to values that a sequence draws; keys repeat.

    At each key that occurred before, the model predicts its value. The last key is always one.
    Training predicts every next token, as in the source. Keys are the lower half of the tokens
    without noise, values the upper; with probability f, a pair is two random noise tokens.
    """

    name = "in-context-recall"
    version = 1
    Config = RecallConfig
    recipes = {"smoke": MAD_SMOKE, "quick": MAD_QUICK, "paper": MAD_PAPER}

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.config.plain_ids // 2

    @property
    def answers(self) -> int:
        """The number of values."""
        return self.config.plain_ids - self.keys

    @property
    def signature(self) -> Signature:
        """T − 1 ids, read at all of them, and causal: the next id is a target."""
        shown = self.config.length - 1
        return Signature(
            **text_signature_fields(shown, self.config.vocabulary),
            readout=tuple(range(shown)),
            causal=True,
        )

    def draw(self, random: Random) -> Draws:
        """The key of each pair, the map (rows, K), the last key's choice, and the noise."""
        c, pairs = self.config, self.config.length // 2
        draws = {
            "keys": random.integers("key", self.keys, pairs - 1),
            "map": random.integers("value", self.answers, self.keys),
            "probe": random.uniform("probe", self.keys),
        }
        if c.noise_ids:
            draws["noisy"] = random.uniform("noisy", pairs - 1)
            draws["kept"] = random.integers("kept", pairs - 1)
            draws["noise"] = random.integers("noise", c.noise_ids, pairs - 1, 2)
        return draws

    def arrange(self, draws: Draws) -> Batch:
        """The sequence without its last id; every next id; and where a repeated key's value is."""
        keys, noisy = draws["keys"], self._noisy(draws)
        # The last pair repeats one of the keys that occurred, each as likely.
        shown = torch.nn.functional.one_hot(keys, self.keys).bool() & ~noisy.unsqueeze(2)
        probe = draws["probe"].where(shown.any(dim=1), -1.0).argmax(dim=1, keepdim=True)
        keys = torch.cat([keys, probe], dim=1)
        noisy = torch.cat([noisy, torch.zeros_like(probe, dtype=torch.bool)], dim=1)
        pairs = torch.stack([keys, self.keys + draws["map"].gather(1, keys)], dim=2)
        if "noise" in draws:
            noise = self.config.plain_ids + torch.nn.functional.pad(draws["noise"], (0, 0, 0, 1))
            pairs = torch.where(noisy.unsqueeze(2), noise, pairs)
        ids = pairs.flatten(1)
        asked = torch.zeros_like(ids, dtype=torch.bool)
        asked[:, ::2] = repeats(keys, noisy)
        return Batch(Text(ids[:, :-1]), ids[:, 1:], {"asked": asked[:, :-1]})

    def _noisy(self, draws: Draws) -> Tensor:
        """Which pairs before the last are noise, (rows, pairs − 1); at least one is not."""
        if "noisy" not in draws:
            return torch.zeros_like(draws["keys"], dtype=torch.bool)
        noisy = draws["noisy"] < self.config.noise
        return noisy.scatter(1, draws["kept"].unsqueeze(1), False)


class NoisyRecall(InContextRecall):
    """In-context recall with noise tokens between the pairs."""

    name = "noisy-recall"
    Config = NoisyConfig


def repeats(keys: Tensor, left_out: Tensor) -> Tensor:
    """Whether a key (rows, n) occurred before, leaving some of both out, (rows, n)."""
    same = (keys.unsqueeze(2) == keys.unsqueeze(1)) & ~left_out.unsqueeze(1)
    return same.tril(-1).any(dim=2) & ~left_out
