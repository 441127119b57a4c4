"""The task `fuzzy-recall` of MAD (Poli et al. 2024)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Batch, Draws, PooledConfig, Random, Signature, Text

from .base import RecallTask, text_signature_fields
from .recipes import MAD_PAPER, MAD_QUICK, MAD_SMOKE


class FuzzyConfig(PooledConfig):
    """The ids of keys and values, and the length."""

    vocabulary: int = Field(
        # Two ids of values: with one, there would be a single answer.
        16,
        ge=4,
        description="V, number of tokens in the vocabulary, including the padding token",
    )
    length: int = Field(128, ge=4, description="T, number of tokens that a model sees")
    most: int = Field(3, ge=1, description="largest number of tokens in a key, and in a value")

    @property
    def keys(self) -> int:
        """The number of ids of keys."""
        return (self.vocabulary - 1) // 2

    @model_validator(mode="after")
    def _fits(self) -> FuzzyConfig:
        if self.keys < self.most:
            raise ValueError(
                f"vocabulary={self.vocabulary} has {self.keys} ids of keys, fewer than "
                f"most={self.most}"
            )
        if (self.keys + 1) ** self.most >= 2**63:
            raise ValueError(
                f"vocabulary={self.vocabulary} has more keys of most={self.most} tokens than int64 "
                "can number"
            )
        if self.length < 6 * self.most:
            raise ValueError(f"most={self.most} needs a length of {6 * self.most} or more")
        return self


class Parts(NamedTuple):
    """Keys or values: ids (rows, n, most), of which the first `size` (rows, n) count."""

    ids: Tensor
    size: Tensor

    def at(self, index: Tensor) -> Parts:
        """Those at index (rows, m)."""
        ids = self.ids.gather(1, index.unsqueeze(2).expand(-1, -1, self.ids.shape[2]))
        return Parts(ids, self.size.gather(1, index))

    def codes(self, base: int) -> Tensor:
        """One number each, equal for equal parts, (rows, n)."""
        codes = torch.zeros_like(self.size)
        for i in range(self.ids.shape[2]):
            # Ids count from 1, so that a shorter part differs from one that ends in id 0.
            codes = codes * (base + 1) + (self.ids[:, :, i] + 1).where(i < self.size, 0)
        return codes


class FuzzyRecall(RecallTask[FuzzyConfig]):
    """Pairs of a key and a value, each of one to three different tokens; predict repeated values.

    A sequence maps keys to values. It ends with the probe, a key that occurred, and is padded on
    the left, with id V − 1. In evaluation all keys have three tokens. Training predicts every next
    token, as in the source. The source leaves a few probes unanswerable; here every one occurred.
    """

    name = "fuzzy-recall"
    version = 1
    Config = FuzzyConfig
    recipes = {"smoke": MAD_SMOKE, "quick": MAD_QUICK, "paper": MAD_PAPER}
    unrounded = frozenset({"key", "value", "start"})

    @property
    def answers(self) -> int:
        """The number of ids of values."""
        return self.config.vocabulary - 1 - self.config.keys

    @property
    def signature(self) -> Signature:
        """T ids, read at all of them, and causal: the next id is a target."""
        c = self.config
        return Signature(
            **text_signature_fields(c.length, c.vocabulary),
            readout=tuple(range(c.length)),
            causal=True,
        )

    @property
    def slots(self) -> int:
        """The largest number of pairs, and the probe's own at the end."""
        return self.config.length // 2 + 1

    def draw(self, random: Random) -> Draws:
        """Orders of the ids of keys and values, sizes, and where the probe is at the latest.

        The last slot is the probe.
        """
        c, slots = self.config, self.slots
        sizes = random.integers("key size", c.most, slots)
        return {
            "key": random.uniform("key", slots, c.keys),
            "value": random.uniform("value", slots, self.answers),
            # Drawn in evaluation too, where every key has the largest size.
            "key size": 1 + sizes if random.training else torch.full_like(sizes, c.most),
            "value size": 1 + random.integers("value size", c.most, slots),
            "start": random.uniform("start"),
        }

    def arrange(self, draws: Draws) -> Batch:
        """The pairs in a row, padded; every next id; and where the values of repeats are."""
        c = self.config
        keys, values, used = self._pairs(draws)
        sizes = (keys.size + values.size) * used
        # From the right: the last pair ends the sequence of T + 1 ids.
        start = c.length + 1 - sizes.flip(1).cumsum(dim=1).flip(1)
        # One more id, cut off at the end, takes what no slot shows.
        ids = start.new_full((len(start), c.length + 2), c.vocabulary - 1)
        asked = torch.zeros_like(ids, dtype=torch.bool)
        repeated = _repeated(keys.codes(c.keys), used)
        for i in range(c.most):
            shown = used & (i < keys.size)
            ids = ids.scatter(1, (start + i).where(shown, c.length + 1), keys.ids[:, :, i])
            shown = used & (i < values.size)
            place = (start + keys.size + i).where(shown, c.length + 1)
            ids = ids.scatter(1, place, c.keys + values.ids[:, :, i])
            asked = asked.scatter(1, place, repeated)
        ids, asked = ids[:, :-1], asked[:, :-1]
        return Batch(Text(ids[:, :-1]), ids[:, 1:], {"asked": asked[:, 1:]})

    def _pairs(self, draws: Draws) -> tuple[Parts, Parts, Tensor]:
        """Keys and values in order, the probe's last, and which of them are shown (rows, n)."""
        c = self.config
        keys = Parts(draws["key"].argsort(dim=2)[:, :, : c.most], draws["key size"])
        values = Parts(draws["value"].argsort(dim=2)[:, :, : c.most], draws["value size"])
        index = torch.arange(self.slots, device=draws["start"].device)
        index = index.expand(len(draws["start"]), -1)
        last = torch.full_like(index, self.slots - 1)
        # One slot repeats the probe: the first that starts at the drawn place or later.
        keys = keys.at(index.where(index != self._replaced(draws, keys, values), last))
        values = self._mapped(keys, values)
        used = self._starts(keys, values) < self._room(keys, values)
        used[:, -1] = True
        return keys, values, used

    def _replaced(self, draws: Draws, keys: Parts, values: Parts) -> Tensor:
        """The slot that repeats the probe, (rows, 1); one that is shown."""
        # The slots before it stay as they are, so it starts where it would without it.
        starts = self._starts(keys, self._mapped(keys, values))
        room = self._room(keys, values)
        last_shown = (starts[:, :-1] < room).sum(dim=1, keepdim=True) - 1
        due = starts >= (draws["start"].unsqueeze(1) * room).floor()
        return torch.minimum(due.int().argmax(dim=1, keepdim=True), last_shown)

    def _mapped(self, keys: Parts, values: Parts) -> Parts:
        """The value of each slot's key: that of its first slot, or the probe's."""
        codes = keys.codes(self.config.keys)
        same = codes.unsqueeze(2) == codes.unsqueeze(1)
        first = same.int().argmax(dim=2)
        return values.at(torch.full_like(first, self.slots - 1).where(same[:, :, -1], first))

    def _starts(self, keys: Parts, values: Parts) -> Tensor:
        """The first position of each slot if all are shown, without padding, (rows, n)."""
        sizes = keys.size + values.size
        return sizes.cumsum(dim=1) - sizes

    def _room(self, keys: Parts, values: Parts) -> Tensor:
        """Slots are shown that start before this: the probe and one of the largest fit after it."""
        probe = keys.size[:, -1:] + values.size[:, -1:]
        return self.config.length - probe - 2 * self.config.most


def _repeated(codes: Tensor, used: Tensor) -> Tensor:
    """Whether a key (rows, n) that is shown has been shown before, (rows, n)."""
    same = (codes.unsqueeze(2) == codes.unsqueeze(1)) & used.unsqueeze(1)
    return same.tril(-1).any(dim=2) & used
