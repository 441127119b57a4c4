"""The published schema of records, and which of two scores is better."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iclbench.api.record import Ranking, record_schema
from iclbench.api.tuning import Trial, best_trial

DOCS = Path(__file__).parents[2] / "docs"


def test_published_schema_matches_the_record():
    assert json.loads((DOCS / "record.schema.json").read_text()) == record_schema()


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
