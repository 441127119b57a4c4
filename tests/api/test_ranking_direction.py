"""Which of two scores is better."""

from __future__ import annotations

import pytest

from iclbench.api.ranking import Ranking
from iclbench.api.tuning import Trial, best_trial


@pytest.mark.parametrize(
    ("better", "statistic", "best"),
    [("lower", "mean", 1.0), ("higher", "mean", 3.0), ("lower", "mean digits", 3.0)],
)
def test_the_best_score_is_the_lowest_only_where_lower_means_are_better(better, statistic, best):
    ranking = Ranking(metric="e", better=better, statistic=statistic)
    scores = (2.0, 1.0, None, 3.0)
    assert max(scores, key=ranking.goodness) == best
    trials = tuple(Trial(model_args={}, recipe_args={}, score=score) for score in scores)
    assert scores[best_trial(trials, ranking)] == best
