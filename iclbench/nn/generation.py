"""Generating ids, one after another, from a model that answers `token`.

A model with a key–value cache offers `decoder()`, a fresh `Decoder`; any other is asked anew about
the whole text at every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ..api.prompts import Text


class Decoder(Protocol):
    """A text on its way: takes up ids and says what comes next."""

    def advance(self, ids: Tensor) -> Tensor:
        """Append ids (B, t), t ≥ 1; the logits (B, V) of the id after the last."""
        ...


class Sampling(NamedTuple):
    """How an id is chosen from logits: at temperature 0 the likeliest, else at random.

    From the logits divided by the temperature the `top_k` likeliest are kept, and of these the
    fewest whose probabilities sum up to `top_p` at least.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    def choose(self, logits: Tensor, uniform: Tensor) -> Tensor:
        """Ids (B,) from logits (B, V) and draws (B,) on [0, 1); ties go to the lower id."""
        if self.temperature == 0:
            return logits.argmax(dim=1)
        ordered, ids = (logits.double() / self.temperature).sort(
            dim=1, descending=True, stable=True
        )
        keep = torch.ones_like(ordered, dtype=torch.bool)
        if self.top_k is not None:
            keep[:, self.top_k :] = False
        chances = ordered.masked_fill(~keep, -torch.inf).softmax(dim=1)
        if self.top_p is not None:
            before = chances.cumsum(dim=1) - chances
            chances = chances.masked_fill(before >= self.top_p, 0.0)
        edges = chances.cumsum(dim=1)
        place = (uniform.to(edges).unsqueeze(1) * edges[:, -1:] >= edges).sum(dim=1)
        # The last edge may round to what it is compared with.
        last = (chances > 0).sum(dim=1) - 1
        return ids.gather(1, torch.minimum(place, last).unsqueeze(1))[:, 0]


class Recompute:
    """A decoder for any causal model that answers at all of `length` positions."""

    def __init__(self, model: nn.Module, length: int) -> None:
        self.model, self.length = model, length
        self.ids: Tensor | None = None

    def advance(self, ids: Tensor) -> Tensor:
        """See `Decoder.advance`; what comes later is filled with the id 0, which is not seen."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        count = self.ids.shape[1]
        filled = torch.nn.functional.pad(self.ids, (0, self.length - count))
        logits: Tensor = self.model(Text(filled))[:, count - 1]
        return logits


class SequenceDecoder:
    """The harness's sequence model, with what its mixers keep of earlier positions.

    A mixer that can keeps it by `extend(x (B, t, width), kept) → (y (B, t, width), kept)`, and says
    so by `extends`; `kept` is None at first.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.count = model, 0
        self.kept: list[Any] = [None] * len(model.blocks)

    def advance(self, ids: Tensor) -> Tensor:
        """See `Decoder.advance`."""
        model, end = self.model, self.count + ids.shape[1]
        real = torch.zeros(*ids.shape, 0, device=ids.device)
        x = model.embed(real, ids) + model.positions[self.count : end]
        for i, block in enumerate(model.blocks):
            mixed, self.kept[i] = block.mixer.extend(block.norm1(x), self.kept[i])
            x = block.feed(x + mixed)
        self.count = end
        logits: Tensor = model.readout(model.norm(x[:, -1]))
        return logits


def decoder_of(model: nn.Module, length: int, *, cache: bool = True) -> Decoder:
    """The model's own decoder where it has one and `cache`, else one that recomputes."""
    offer = getattr(model, "decoder", None)
    own: Decoder | None = offer() if cache and offer is not None else None
    return Recompute(model, length) if own is None else own


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
    """What comes after each of the beginnings (B, P): ids (B, n), n ≤ steps.

    From the id `end` on, a row is filled with it. `uniform` (B, steps) are the draws; `length` is
    the most positions that the model has, of which P + steps − 1 are used.
    """
    decoder = decoder_of(model, length, cache=cache)
    new, found = beginnings, []
    over = torch.zeros(len(beginnings), dtype=torch.bool, device=beginnings.device)
    for step in range(steps):
        chosen = sampling.choose(decoder.advance(new), uniform[:, step].to(beginnings.device))
        chosen = torch.where(over, end, chosen)
        found.append(chosen)
        over = over | (chosen == end)
        if bool(over.all()):
            break
        new = chosen.unsqueeze(1)
    return torch.stack(found, dim=1)
