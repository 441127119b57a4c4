"""Solvers of recall that read the ids: controls with a known accuracy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad

from iclbench import Config, Signature, Solver, Text


class TextSolver(Solver):
    """A solver of tasks that ask for ids of a text."""

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It needs a text, and a task that asks for ids at positions of their own."""
        if signature.prompt is not Text or signature.target != "token":
            return f"it continues texts, and the task asks for {signature.target}"
        if signature.reads_one_state:
            return "it answers one id per position, and the task asks one position several times"
        return None


class LookupConfig(Config):
    """How much must agree, and how sure the answer is."""

    ids: int = Field(1, ge=1, description="maximum length of the common suffix")
    smoothing: float = Field(
        0.01, gt=0, le=1, description="weight of the uniform distribution over all tokens"
    )


class Lookup(TextSolver):
    """The token after the first earlier position with the longest common suffix, up to `ids` long.

    The suffix ends with the current token. With ids=1 it is the token that first followed the
    current one: exact for `mqar`, `in-context-recall` and `noisy-recall`. With ids=6 it is exact
    for `fuzzy-recall`.
    """

    name = "lookup"
    Config = LookupConfig

    def build(self, signature: Signature, config: LookupConfig) -> nn.Module:
        """A module without parameters."""
        return _LookupModule(signature, config)


class _LookupModule(nn.Module):
    def __init__(self, signature: Signature, config: LookupConfig) -> None:
        super().__init__()
        self.readout, self.vocabulary = list(signature.readout), signature.vocabulary
        self.most, self.smoothing = config.ids, config.smoothing
        self.dtype = torch.get_default_dtype()

    def forward(self, prompt: Text) -> Tensor:
        """Log-probabilities (B, P, V); all ids are equally probable where nothing agrees."""
        ids, length = prompt.ids, prompt.ids.shape[1]
        same = (ids.unsqueeze(2) == ids.unsqueeze(1)).tril(-1)
        run, shared = same, same.long()
        for _ in range(self.most - 1):
            # A run at (t, s) goes on if the ids before both places agree as well.
            run = same & pad(run, (1, -1, 1, -1))
            shared = shared + run
        shared = shared[:, self.readout]
        # The first place of several that share as much.
        place = shared.argmax(dim=2)
        answer = ids.gather(1, (place + 1).clamp(max=length - 1))
        known = shared.amax(dim=2) > 0
        weight = torch.ones_like(known, dtype=self.dtype).masked_fill(known, self.smoothing)
        weight = weight.unsqueeze(2)
        probabilities = one_hot(answer, self.vocabulary).to(self.dtype)
        return ((1.0 - weight) * probabilities + weight / self.vocabulary).log()


class ContextGuess(TextSolver):
    """All values of the context with equal probability: those at odd places before any read-out.

    Its accuracy on `mqar` is 1/n for n pairs.
    """

    name = "context-guess"
    chance: ClassVar[bool] = True

    def supports(self, signature: Signature, config: Any) -> str | None:
        """As `TextSolver`, with pairs before the first read-out, and read-outs in pairs too."""
        first = signature.readout[0]
        # The last read-out, too, is the first of a pair.
        ends = [*signature.readout, signature.length]
        apart = all(b - a > 1 for a, b in pairwise(ends))
        if first < 2 or first % 2 or not apart:
            return "it needs pairs of ids before the first read-out, and pairs from there on"
        return super().supports(signature, config)

    def build(self, signature: Signature, config: Config) -> nn.Module:
        """A module without parameters."""
        return _GuessModule(signature)


class _GuessModule(nn.Module):
    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.context, self.asked = signature.readout[0], len(signature.readout)
        self.vocabulary = signature.vocabulary
        self.dtype = torch.get_default_dtype()

    def forward(self, prompt: Text) -> Tensor:
        """Log-probabilities (B, P, V)."""
        values = prompt.ids[:, 1 : self.context : 2]
        counts = one_hot(values, self.vocabulary).sum(dim=1).to(self.dtype)
        # Not −∞ for other ids: their probability is not known to be 0.
        shares = (counts / values.shape[1]).clamp(min=1e-9).log()
        return shares.unsqueeze(1).expand(-1, self.asked, -1)


class CopyUnblanked(TextSolver):
    """The i-th read-out gets the i-th token that can be copied, whose id is below V − 2."""

    name = "copy-unblanked"

    def supports(self, signature: Signature, config: Any) -> str | None:
        """As `TextSolver`, read at the last positions of a text that is longer than twice these."""
        count, length = len(signature.readout), signature.length
        at_end = signature.readout == tuple(range(length - count, length))
        if not at_end or length <= 2 * count or signature.vocabulary < 3:
            return "it needs read-outs at the end, with ids to copy before them"
        return super().supports(signature, config)

    def build(self, signature: Signature, config: Config) -> nn.Module:
        """A module without parameters."""
        return _CopyModule(signature)


class _CopyModule(nn.Module):
    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.asked, self.vocabulary = len(signature.readout), signature.vocabulary
        self.dtype = torch.get_default_dtype()

    def forward(self, prompt: Text) -> Tensor:
        """Log-probabilities (B, P, V)."""
        ids = prompt.ids[:, : -self.asked]
        blank = (ids >= self.vocabulary - 2).to(torch.int8)
        first = blank.argsort(dim=1, stable=True)[:, : self.asked]
        probabilities = one_hot(ids.gather(1, first), self.vocabulary).to(self.dtype)
        # Not −∞: a prediction must be finite.
        return probabilities.clamp(min=torch.finfo(self.dtype).tiny).log()
