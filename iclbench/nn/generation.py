"""Generate ids one at a time from a model for target `token`.

A model with a cache offers `iclbench.Decodes`. Any other model rereads the whole text every time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..api.capabilities import Decoder, Decodes, offers
from ..api.prompts import Text


class Sampling(NamedTuple):
    """How to choose an id from logits: the likeliest at temperature 0, else at random.

    The logits are divided by the temperature. Of the `top_k` likeliest ids, the smallest set whose
    probabilities sum to at least `top_p` is kept.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def choose(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Choose ids (B,) from logits (B, V) by uniform draws (B,) on [0, 1).

        Ties go to the lower id.
        """
        if self.temperature == 0:
            return logits.argmax(dim=1)
        # In float64: sums of small probabilities decide where top_p ends.
        ordered, ids = (logits.double() / self.temperature).sort(
            dim=1, descending=True, stable=True
        )
        keep = torch.ones_like(ordered, dtype=torch.bool)
        if self.top_k is not None:
            keep[:, self.top_k :] = False
        probabilities = ordered.masked_fill(~keep, -torch.inf).softmax(dim=1)
        if self.top_p is not None:
            # The id that crosses top_p is kept: only what precedes it counts.
            likelier = probabilities.cumsum(dim=1) - probabilities
            probabilities = probabilities.masked_fill(likelier >= self.top_p, 0.0)
        # Invert the distribution function; scaling by its last edge normalizes it.
        edges = probabilities.cumsum(dim=1)
        rank = (uniform.to(edges).unsqueeze(1) * edges[:, -1:] >= edges).sum(dim=1)
        # Rounding may push the draw up to the last edge, beyond every kept id.
        last = (probabilities > 0).sum(dim=1) - 1
        return ids.gather(1, torch.minimum(rank, last).unsqueeze(1))[:, 0]


class Recompute:
    """A decoder for any causal model that answers at all of its `length` positions."""

    def __init__(self, model: nn.Module, length: int) -> None:
        self.model, self.length = model, length
        self.ids: Tensor | None = None

    def advance(self, ids: Tensor) -> Tensor:
        """See `Decoder.advance`. Later positions hold the id 0, which a causal model ignores."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        count = self.ids.shape[1]
        padded = torch.nn.functional.pad(self.ids, (0, self.length - count))
        logits: Tensor = self.model(Text(padded))[:, count - 1]
        return logits


class SequenceDecoder:
    """A decoder for a sequence model whose mixers offer `ExtendsPositions`."""

    def __init__(self, model: Any) -> None:
        self.model, self.count = model, 0
        self.caches: list[Any] = [None] * len(model.blocks)

    def advance(self, ids: Tensor) -> Tensor:
        """See `Decoder.advance`."""
        model, end = self.model, self.count + ids.shape[1]
        # A text has no real features.
        real = torch.zeros(*ids.shape, 0, device=ids.device)
        x = model.embedded(real, ids, self.count)
        for i, block in enumerate(model.blocks):
            mixed, self.caches[i] = block.mixer.extend(block.norm1(x), self.caches[i])
            x = block.feed(x + mixed)
        self.count = end
        # Only the newest id is answered; the others fill the caches.
        logits: Tensor = model.readout(model.norm(x[:, -1]))
        return logits


class BackboneDecoder:
    """A decoder for a backbone model whose backbone offers `ExtendsPositions`."""

    def __init__(self, model: Any) -> None:
        self.model, self.cache = model, None

    def advance(self, ids: Tensor) -> Tensor:
        """See `Decoder.advance`."""
        real = torch.zeros(*ids.shape, 0, device=ids.device)
        states, self.cache = self.model.backbone.extend(self.model.embed(real, ids), self.cache)
        logits: Tensor = self.model.readout(states[:, -1])
        return logits


def decoder_of(model: nn.Module, length: int, *, cache: bool = True) -> Decoder:
    """Return the model's own decoder if it has one and `cache` is set, else `Recompute`."""
    decodes: Any = model
    decoder: Decoder | None = decodes.decoder() if cache and offers(model, Decodes) else None
    return Recompute(model, length) if decoder is None else decoder


@torch.no_grad()
def generate(
    model: nn.Module,
    beginnings: Tensor,
    steps: int,
    *,
    length: int,
    end: int,
    sampling: Sampling,
    uniform: Tensor,
    cache: bool = True,
) -> Tensor:
    """Generate ids (B, n), n ≤ steps, that continue the beginnings (B, P).

    After its first `end`, a row is filled with `end`. `uniform` (B, steps) holds draws on [0, 1).
    `length` is the model's number of positions, of which P + steps − 1 are used. The model must be
    in evaluation mode.
    """
    decoder = decoder_of(model, length, cache=cache)
    new_ids, generated = beginnings, []
    ended = torch.zeros(len(beginnings), dtype=torch.bool, device=beginnings.device)
    for step in range(steps):
        draws = uniform[:, step].to(beginnings.device)
        chosen = torch.where(ended, end, sampling.choose(decoder.advance(new_ids), draws))
        generated.append(chosen)
        ended = ended | (chosen == end)
        if bool(ended.all()):
            break
        new_ids = chosen.unsqueeze(1)
    return torch.stack(generated, dim=1)
