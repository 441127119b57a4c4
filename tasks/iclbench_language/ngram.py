"""The solver `n-gram`: counts of the words so far, backing off to shorter contexts."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from iclbench import Config, Signature, Solver

from .words import SPECIAL, Words

#: Elements of the largest matrix of matching positions that is held at once.
AT_ONCE = 2**23


class NGramConfig(Config):
    """The order."""

    order: int = Field(
        3, ge=1, le=16, description="N: the next symbol is predicted from the last N − 1"
    )


class NGram(Solver):
    """n-grams within words, of the prompt so far, with back-off (RegBench's control).

    A context h is the last N − 1 symbols of the word, padded at its start. A symbol s that has
    followed h has the probability n(hs)/n(h), where n(h) counts every occurrence of h, the present
    one and those at the end of a word too. What is left goes to the symbols that have not followed
    h, in proportion to their probability after the context without its first symbol. After the
    empty context, all symbols that have not occurred are equally probable.
    """

    name = "n-gram"
    Config = NGramConfig

    def supports(self, signature: Signature, config: NGramConfig) -> str | None:
        """It needs words, and a task that asks for their symbols."""
        asks = signature.prompt is Words and signature.target == "token"
        return None if asks else f"it answers the tokens of Words, not {signature.target}"

    def build(self, signature: Signature, config: NGramConfig) -> nn.Module:
        """A module without parameters."""
        return _NGramModule(signature, config)


class _NGramModule(nn.Module):
    def __init__(self, signature: Signature, config: NGramConfig) -> None:
        super().__init__()
        self.order, self.readout = config.order, list(signature.readout)
        self.symbols = signature.vocabulary - SPECIAL
        self.dtype = torch.get_default_dtype()

    def forward(self, prompt: Any) -> Tensor:
        """Log-probabilities (B, P, V)."""
        ids: Tensor = prompt.ids
        size = max(1, AT_ONCE // (ids.shape[1] + 1) ** 2)
        probabilities = torch.cat([self.probabilities(part) for part in torch.split(ids, size)])
        probabilities = pad(probabilities[:, self.readout], (0, SPECIAL))
        # A special id's probability is 0; a prediction must be finite.
        return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()

    def probabilities(self, ids: Tensor) -> Tensor:
        """The probabilities (B, T, symbols) of the next symbol after each of T ids."""
        # A prompt begins with a word: position 0 of these is before its first id.
        ids = pad(ids, (1, 0), value=self.symbols)
        is_symbol = ids < self.symbols
        followers = one_hot(ids.clamp(max=self.symbols), self.symbols + 1)[:, 1:, : self.symbols]
        followers = pad(followers, (0, 0, 0, 1)).to(self.dtype)
        # Whether the contexts of two positions match: the empty ones all do.
        matches = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()
        matches = matches.expand(len(ids), -1, -1)
        unseen = torch.full_like(followers, 1.0 / self.symbols)
        for length in range(self.order):
            if length:
                matches = matches & _same_symbol(ids, is_symbol, length)
            unseen = _backed_off(matches.to(followers), followers, unseen)
        return unseen[:, 1:]


def _same_symbol(ids: Tensor, is_symbol: Tensor, back: int) -> Tensor:
    """Whether two positions (B, S, S) have the same symbol `back` − 1 ids ago, or none both.

    There is none before the start of the word.
    """
    # The index of a position's symbol that long ago is in its word if no special id is between.
    inside = is_symbol.clone()
    for step in range(1, back):
        inside = inside & pad(is_symbol, (step, 0))[:, : ids.shape[1]]
    symbols = torch.where(inside, pad(ids, (back - 1, 0))[:, : ids.shape[1]], -1)
    return symbols.unsqueeze(2) == symbols.unsqueeze(1)


def _backed_off(matches: Tensor, followers: Tensor, shorter: Tensor) -> Tensor:
    """The probabilities (B, S, V) after contexts that match, with those of the shorter contexts."""
    # The follower of the present position is not known yet; that of an earlier one is.
    earlier = matches.tril(diagonal=-1)
    counts = earlier @ followers
    total = matches.sum(dim=2, keepdim=True)
    rest = torch.where(counts > 0, 0.0, shorter)
    mass = rest.sum(dim=2, keepdim=True)
    left = 1.0 - counts.sum(dim=2, keepdim=True) / total
    share = torch.where(mass > 0, left * rest / torch.where(mass > 0, mass, 1.0), 0.0)
    probabilities = counts / total + share
    # Where every symbol has followed the context, nothing is left for others.
    return probabilities / probabilities.sum(dim=2, keepdim=True)
