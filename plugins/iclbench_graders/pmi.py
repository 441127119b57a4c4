"""Pointwise mutual information of a beginning and its ending under a small language model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import Field

from iclbench import (
    Completion,
    Config,
    Grader,
    GraderReport,
    LocalLanguageModel,
    UsageError,
    find_device,
)

from .progress import Progress
from .text_statistics import repetition, words

#: What messages call it.
WHO = "grader pmi"
#: The token between documents in the model's training.
START = "<|endoftext|>"
#: Words in the n-grams of `repetition`.
REPETITION_N = 4


class PMIConfig(Config):
    """Arguments of `pmi`."""

    path: str | None = Field(
        None,
        description="GGUF file of a causal language model; null: SmolLM2-135M-Instruct, Q4_1",
    )
    device: str = Field("cpu", description="device of the model: cpu, cuda, cuda:1 …, auto")


class PMI(Grader):
    """log p(ending | beginning) − log p(ending), in nats, in total and per token.

    The ending's tokens are the same in both terms. Unrelated endings score near 0 or below. A loop
    is predicted by its own past rather than by the beginning, so it gains little, but not nothing;
    read `repetition` with it.
    """

    name = "pmi"
    Config: ClassVar[type[Config]] = PMIConfig
    operational: ClassVar[frozenset[str]] = frozenset({"device"})

    def __init__(self, config: PMIConfig) -> None:
        super().__init__(config)
        self._reasons: Counter[str] = Counter()

    @property
    def fractions(self) -> frozenset[str]:
        """The share of repeated phrases."""
        return frozenset({"repetition"})

    def prepare(self, completions: int, budget: float | None) -> None:
        """Raises UsageError if packages, the model's file or the device are missing."""
        self._local.require()

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """`pmi`, `pmi_per_token` (nats) and `repetition`.

        NaN for an ending without tokens, or too long for the model together with its beginning.
        """
        rows, progress = [], Progress(self.name, len(completions))
        for completion in completions:
            pmi, tokens = self._pmi(completion)
            repeated = repetition(words(completion.ending), REPETITION_N)
            self._reasons["fewer words than an n-gram has"] += math.isnan(repeated)
            rows.append((pmi, pmi / max(tokens, 1), repeated))
            progress.step()
        names = ("pmi", "pmi_per_token", "repetition")
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    def _pmi(self, completion: Completion) -> tuple[float, int]:
        """The mutual information in nats, or NaN, and the number of the ending's tokens."""
        model, tokenizer = self._local.loaded
        ending = tokenizer(completion.ending, add_special_tokens=False)["input_ids"]
        beginning = tokenizer(completion.beginning, add_special_tokens=False)["input_ids"]
        prefix = [self._start]
        if not ending:
            self._reasons["no token to grade"] += 1
            return math.nan, 0
        if 1 + len(beginning) + len(ending) > model.config.max_position_embeddings:
            self._reasons["too long for the model"] += 1
            return math.nan, len(ending)
        conditional = log_probability(model, prefix + beginning, ending)
        return conditional - log_probability(model, prefix, ending), len(ending)

    @cached_property
    def _start(self) -> int:
        """The id between documents, or else that of the beginning of a text."""
        tokenizer = self._local.loaded[1]
        # convert_tokens_to_ids would give the id of the unknown token instead of none.
        start = tokenizer.get_vocab().get(START, tokenizer.bos_token_id)
        if start is None:
            raise UsageError(f"{WHO}: the model has no token that begins a text")
        return int(start)

    @cached_property
    def _local(self) -> LocalLanguageModel:
        device = find_device(self.config.device, make_current=False)
        return LocalLanguageModel(self.config.path, WHO, device)

    def report(self) -> GraderReport:
        """The report, with the name of the model's file and the start of its SHA-256."""
        return GraderReport(
            name=self.name, model=self._local.identity, reasons=dict(+self._reasons)
        )


def log_probability(model: Any, prefix: list[int], ids: list[int]) -> float:
    """log p(ids | prefix) in nats, summed in float64; `prefix` holds at least one id."""
    tokens = torch.tensor([[*prefix, *ids]], device=model.device)
    with torch.no_grad():
        logits = model(tokens).logits[0, len(prefix) - 1 : -1]
    targets = torch.tensor(ids, device=model.device)[:, None]
    return float(logits.double().log_softmax(dim=-1).gather(1, targets).sum())
