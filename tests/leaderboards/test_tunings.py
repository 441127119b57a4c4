"""What a row says of its tuning: whether settings were chosen, from which trials, and by noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iclbench.api.ranking import Ranking
from iclbench.api.record import Tuning
from iclbench.leaderboards import formats
from iclbench.leaderboards.tunings import is_tuned, trials_of, tuned_at_chance, tuning_budget


@pytest.fixture
def rows(board):
    return board.rows


def test_a_search_without_a_choice_tunes_nothing(rows):
    record = next(row for row in rows if row.is_trained).record
    first, second = ({"recipe_args": {"learning_rate": r}, "score": 1.0} for r in (1e-3, 1e-2))
    for trials, tuned in (
        ([first, second], True),
        ([first], False),
        ([first, first], False),
        ([first, {**second, "score": None}], False),  # it failed
        ([{}, 1], False),
        ("many", False),
    ):
        tuning = Tuning(sha256="0" * 64, document={"trials": trials})
        assert is_tuned(record.model_copy(update={"tuning": tuning})) == tuned


def test_a_row_tells_the_trials_of_its_tuning_and_for_which_budget(rows):
    record = next(row for row in rows if row.is_trained).record
    assert (trials_of(record), tuning_budget(record)) == ([], None)
    trial = {"recipe_args": {}, "score": 1.0}
    for document, expected in (
        ({"trials": [trial] * 3, "budget": "2s"}, ([trial] * 3, "2s")),
        ({"trials": [trial]}, ([trial], None)),
        ({"trials": "many", "budget": 2}, ([], None)),
    ):
        tuned = record.model_copy(update={"tuning": Tuning(sha256="0" * 64, document=document)})
        assert (trials_of(tuned), tuning_budget(tuned)) == expected


def with_scores(record, *scores):
    trials = [
        {"recipe_args": {"learning_rate": i}, "score": score} for i, score in enumerate(scores)
    ]
    tuning = Tuning(sha256="0" * 64, document={"trials": trials})
    return record.model_copy(update={"tuning": tuning})


def constant(level, prompts=64):
    """What ranks of a row of chance that has the same on every prompt."""
    return np.full((1, prompts), level)


def test_chance_is_known_on_the_board_s_prompts_and_not_on_those_of_trials(rows):
    """With 64 prompts of each and a deviation of 1, chance may differ by 2 · √(2/64) ≈ 0.35."""
    record = next(row for row in rows if row.is_trained).record
    chance = np.tile([-1.0, 1.0], 32)[None]
    for best, prompts, at_chance in (
        (0.3, 64, True), (0.4, 64, False), (0.3, 1024, False), (0.23, 1024, True)
    ):  # fmt: skip
        tuned = with_scores(record, -0.1, best)
        tuned.tuning.document["evaluation_prompts"] = prompts
        assert tuned_at_chance(tuned, chance) == at_chance


def test_a_search_whose_trials_are_at_chance_chose_by_noise(rows):
    record = next(row for row in rows if row.is_trained).record
    for scores, at_chance in (
        ((-0.03, 0.04), True),
        ((-0.03, 0.06), False),
        ((-0.5, None), True),
        ((None, None), False),  # nothing is known of trials that failed
    ):
        assert tuned_at_chance(with_scores(record, *scores), constant(0.0)) == at_chance
    assert not tuned_at_chance(with_scores(record, 0.0), None)
    lower = Ranking(metric="nll", better="lower", statistic="mean")
    of_nll = record.model_copy(update={"ranking": lower})
    assert tuned_at_chance(with_scores(of_nll, 1.7, 1.61), constant(1.61))
    assert not tuned_at_chance(with_scores(of_nll, 1.7, 1.5), constant(1.61))


def test_noise_has_not_chosen_where_the_search_kept_the_recipe(rows):
    record = with_scores(next(row for row in rows if row.is_trained).record, -0.03, 0.04)
    for chosen, by_noise in ((0, False), (1, True)):
        document = {**record.tuning.document, "chosen": chosen}
        tuning = record.tuning.model_copy(update={"document": document})
        assert (
            tuned_at_chance(record.model_copy(update={"tuning": tuning}), constant(0.0)) == by_noise
        )


def test_a_row_that_was_tuned_at_chance_has_a_mark(rows):
    row = next(row for row in rows if row.is_trained)
    assert (formats.mark(row), row.tuned_at_chance) == (formats.UNTUNED, False)
    blind, seeing = (
        replace(row, record=with_scores(row.record, 0.0, best), chance_values=constant(0.0))
        for best in (0.01, 1.0)
    )
    assert formats.mark(blind) == formats.TUNED_AT_CHANCE
    assert formats.origin(blind).endswith("tuned at chance")
    assert formats.mark(seeing) == formats.MARKS["trained"]


def test_noise_may_have_chosen_the_first_trial_too(rows):
    record = with_scores(next(row for row in rows if row.is_trained).record, 0.04, -0.03)
    document = {**record.tuning.document, "chosen": 0}
    tuning = record.tuning.model_copy(update={"document": document})
    assert tuned_at_chance(record.model_copy(update={"tuning": tuning}), constant(0.0))
