"""Metrics of an ending that need no grader: repetition and the diversity of phrases."""

from __future__ import annotations

import re

#: Words of a phrase in `repetition`.
PHRASE = 4
DISTINCT = (1, 2, 3)


def words_of(text: str) -> list[str]:
    """Lower-case words, without punctuation."""
    return re.findall(r"\w+(?:['’]\w+)*", text.lower())


def repetition(text: str) -> float:
    """The share of four-word phrases that occurred earlier in the text; 0 without phrases."""
    phrases = phrases_of(words_of(text), PHRASE)
    return 1.0 - len(set(phrases)) / len(phrases) if phrases else 0.0


def distinct(text: str, n: int) -> float:
    """The share of distinct phrases of n words (Li et al. 2016); 0 without phrases."""
    phrases = phrases_of(words_of(text), n)
    return len(set(phrases)) / len(phrases) if phrases else 0.0


def text_metrics(text: str) -> dict[str, float]:
    """repetition, and distinct_1 to distinct_3."""
    return {"repetition": repetition(text)} | {f"distinct_{n}": distinct(text, n) for n in DISTINCT}


def phrases_of(words: list[str], n: int) -> list[tuple[str, ...]]:
    """Every n words in a row."""
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
