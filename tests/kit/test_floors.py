"""Floors that are missing, or no floors."""

from __future__ import annotations

import pytest
import torch

from iclbench import ConformanceError, Primary
from iclbench.kit.floors import check_floor
from iclbench_least_squares.fixed import LeastSquares


class Bayes(LeastSquares):
    floor_kind = "bayes"

    def reference(self, batch):
        return batch.target + 0.1


class Missing(Bayes):
    def reference(self, batch):
        return None


class Unknown(Bayes):
    floor_kind = "baies"


class Bad(Bayes):
    def reference(self, batch):
        return -3 * batch.target


class CalledExact(Bayes):
    """The prompt does not determine the answer: its best predictor is not the exact answer."""

    floor_kind = "exact"


class Accurate(Bayes):
    """Ranks by a metric of which more is better."""

    @property
    def primary(self):
        return Primary("squared_error", "higher")


def test_a_floor_below_chance_is_one():
    check_floor(Bayes(LeastSquares.Config(dim=2, examples=3)))


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Missing, "floor_kind is 'bayes', but neither reference.. nor floor.. gives squared_error"),
        (Unknown, "floor_kind is 'baies', not one of exact, bayes, bound, none"),
        (Bad, r"the floor is worse than chance: its mean squared_error is \d.*, that of chance \d"),
        (Accurate, "the floor is worse than chance"),
        (CalledExact, r"floor_kind is 'exact', but reference\(\) differs from exact_answer\(\)"),
    ],
)
def test_what_is_no_floor_is_named(task, reason):
    with pytest.raises(ConformanceError, match=reason):
        check_floor(task(LeastSquares.Config(dim=2, examples=3)))


def test_a_floor_as_good_as_chance_is_no_problem(monkeypatch):
    monkeypatch.setattr(Bayes, "reference", lambda self, batch: torch.zeros_like(batch.target))
    check_floor(Bayes(LeastSquares.Config(dim=2, examples=3)))
