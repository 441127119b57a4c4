"""The grader text-statistics: counts of a text."""

from __future__ import annotations

import math

import pytest

from iclbench import Completion
from iclbench_graders.text_statistics import (
    TextStatistics,
    TextStatisticsConfig,
    distinct,
    repeated_sentences,
    repetition,
    words,
)

LOOP = "The moral of the story is to be kind. " * 5


def count(ending, **args):
    grader = TextStatistics(TextStatisticsConfig(**args))
    scores = grader.grade([Completion("Once", ending)], None)
    return {name: values[0] for name, values in scores.items()}, grader.report()


def test_words_are_lower_case_and_without_punctuation():
    assert words('"Don’t!" said Élise, 3 times—don\'t.') == [
        "don’t", "said", "élise", "3", "times", "don't",
    ]  # fmt: skip


def test_counts_of_a_small_text():
    tokens = words("a b a b a b c")
    assert distinct(tokens, 1) == 3 / 7
    # ab ba ab ba ab bc
    assert distinct(tokens, 2) == 3 / 6
    # aba bab aba bab abc
    assert repetition(tokens, 3) == pytest.approx(2 / 5)
    assert repeated_sentences("He ran. She sat. He ran! He ran") == pytest.approx(1 / 3)


def test_loop_repeats_and_story_does_not():
    loop, _ = count(LOOP)
    # 45 words in a loop of nine: nine 4-grams out of 42.
    assert loop["words"] == 45
    assert loop["repetition"] == pytest.approx(1 - 9 / 42)
    assert loop["repeated_sentences"] == pytest.approx(4 / 5)
    story, _ = count("The fox was hungry. It went to the market and met a hen who could sing.")
    assert story["repetition"] == 0
    assert story["distinct_1"] > 0.9


def test_ending_without_an_n_gram_has_no_share():
    scores, report = count("The end.")
    assert math.isnan(scores["repetition"])
    assert scores["distinct_2"] == 1
    assert report.reasons == {"fewer words than an n-gram has": 1}
    _, report = count(LOOP)
    assert report.reasons == {}
    assert TextStatistics(TextStatisticsConfig()).grade([], None) == {}


def test_length_of_n_grams_is_an_argument():
    scores, _ = count("a b a b c", repetition_n=2, distinct_n=1)
    assert scores["repetition"] == pytest.approx(1 / 4)
    assert set(scores) == {"repetition", "repeated_sentences", "distinct_1", "words"}
