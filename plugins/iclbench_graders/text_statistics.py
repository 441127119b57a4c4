"""Repetition and diversity of a text. These counts do not measure quality."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from iclbench import Completion, Config, Grader, GraderReport

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_SENTENCE = re.compile(r"[^.!?…]+[.!?…]+")


class TextStatisticsConfig(Config):
    """Arguments of `text-statistics`."""

    repetition_n: int = Field(4, ge=1, description="n of the n-grams of `repetition`, in words")
    distinct_n: int = Field(
        3, ge=1, description="largest n of the metrics `distinct_1`, `distinct_2`, …"
    )


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def distinct(tokens: Sequence[str], n: int) -> float:
    """The share of distinct n-grams (Li et al. 2016, distinct-n); NaN without an n-gram."""
    total = len(tokens) - n + 1
    if total < 1:
        return math.nan
    return len({tuple(tokens[i : i + n]) for i in range(total)}) / total


def repetition(tokens: Sequence[str], n: int) -> float:
    """The share of repeated n-grams, 1 − distinct-n (Welleck et al. 2020, seq-rep-n).

    NaN without an n-gram.
    """
    return 1.0 - distinct(tokens, n)


def repeated_sentences(text: str) -> float:
    """The share of repeated sentences among the finished ones; 0 without a sentence."""
    sentences = [" ".join(words(match)) for match in _SENTENCE.findall(text)]
    sentences = [sentence for sentence in sentences if sentence]
    return 1.0 - len(set(sentences)) / len(sentences) if sentences else 0.0


class TextStatistics(Grader):
    """Counts of an ending; its beginning is ignored."""

    name = "text-statistics"
    Config: ClassVar[type[Config]] = TextStatisticsConfig

    def __init__(self, config: TextStatisticsConfig) -> None:
        super().__init__(config)
        self._reasons: Counter[str] = Counter()

    @property
    def fractions(self) -> frozenset[str]:
        """All scores except the number of words."""
        distinct_names = (f"distinct_{n}" for n in range(1, self.config.distinct_n + 1))
        return frozenset({"repetition", "repeated_sentences", *distinct_names})

    def grade(
        self, completions: Sequence[Completion], folder: Path | None
    ) -> dict[str, list[float]]:
        """`repetition`, `repeated_sentences`, `distinct_1` …, and the number of `words`."""
        rows = [self._row(completion.ending) for completion in completions]
        self._reasons["fewer words than an n-gram has"] += sum(
            any(math.isnan(score) for score in row.values()) for row in rows
        )
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}

    def _row(self, ending: str) -> dict[str, float]:
        tokens, config = words(ending), self.config
        return {
            "repetition": repetition(tokens, config.repetition_n),
            "repeated_sentences": repeated_sentences(ending),
            **{f"distinct_{n}": distinct(tokens, n) for n in range(1, config.distinct_n + 1)},
            "words": float(len(tokens)),
        }

    def report(self) -> GraderReport:
        """The report, with the number of endings that are too short for an n-gram."""
        return GraderReport(name=self.name, reasons=dict(+self._reasons))
