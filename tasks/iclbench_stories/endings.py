"""The endings of stories: the true ones, and those that a model generates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from iclbench import Completion, EvaluationContext, Sampling, generate

from .text_metrics import text_metrics
from .vocabulary import Vocabulary

#: Ids times vocabulary that generation holds at once.
AT_ONCE = 2**24


class Endings:
    """The endings of stories with ids (n, T + 1), END first, −1 after their end."""

    def __init__(self, config: Any, vocabulary: Vocabulary, stories: Tensor) -> None:
        self.config, self.vocabulary = config, vocabulary
        # END and the beginning. A model sees at most T ids, so one more can be generated.
        self.given = stories[:, : config.beginning + 1]
        self.steps = config.length + 1 - self.given.shape[1]
        rest = stories[:, self.given.shape[1] :]
        self.beginnings = [vocabulary.decode(row.tolist()) for row in self.given]
        self.true = [self._until_end(row.tolist()) for row in rest]

    def _until_end(self, ids: list[int]) -> list[int]:
        """The ids before the story's end."""
        stops = [i for i, one in enumerate(ids) if one in (self.vocabulary.end, -1)]
        return ids[: stops[0]] if stops else ids

    def generate(self, model: Any, context: EvaluationContext) -> list[list[int]]:
        """The ids that the model continues with, up to END or T + 1 ids in all."""
        c, count = self.config, len(self.given)
        # Drawn for all stories at once, so that an ending does not depend on the batch size.
        uniform = torch.rand(count, self.steps, generator=context.generator, dtype=torch.float64)
        size = max(1, AT_ONCE // (c.length * self.vocabulary.size))
        size = max(1, min(max(size, 8), context.batch_size or count))
        endings: list[list[int]] = []
        for start in range(0, count, size):
            part = slice(start, start + size)
            rows = generate(
                model,
                self.given[part].to(context.device),
                self.steps,
                length=c.length,
                end=self.vocabulary.end,
                sampling=Sampling(c.temperature, c.top_k, c.top_p),
                uniform=uniform[part],
                cache=c.cache,
            )
            endings += [self._until_end(row) for row in rows.tolist()]
        return endings

    def completions(self, endings: list[list[int]]) -> list[Completion]:
        """The beginnings with these endings, as text."""
        texts = map(self.vocabulary.decode, endings)
        return [Completion(*pair) for pair in zip(self.beginnings, texts, strict=True)]

    def metrics(self, endings: list[list[int]]) -> dict[str, Tensor]:
        """repetition, distinct phrases of the text, and ending_length in ids, (n,) each."""
        if not endings:
            return {}
        rows = [text_metrics(self.vocabulary.decode(ids)) for ids in endings]
        values = {name: [row[name] for row in rows] for name in rows[0]}
        values["ending_length"] = [float(len(ids)) for ids in endings]
        return {n: torch.tensor(v, dtype=torch.float64) for n, v in values.items()}
