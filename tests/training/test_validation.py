"""Validation during training: it changes nothing, survives a kill, and keeps its time limit."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from small import CPU, CutError, Noisy, Small, same, trained, training

from iclbench.training import validation
from iclbench.training.resumption import Resumption
from iclbench.training.validation import Validation, points_of


def drawing_score(row, module):
    """Scores that depend on the parameters; it draws from torch's global generators."""
    assert not module.training
    assert not torch.is_grad_enabled()
    torch.rand(7)
    return {"mean": float(sum(p.double().sum() for p in module.parameters())), "row": float(row)}


def validated(seeds, resumption=None, observer=lambda step, loss: None, **options):
    run = training(seeds, **options)
    points = points_of(run.recipe.steps, run.recipe.chunk)
    run.validation = Validation(drawing_score, points, 0.0, CPU)
    return run.run(resumption, observer), run.validation


@pytest.mark.parametrize("cls", [Small, Noisy])
@pytest.mark.parametrize("optimizer", ["adam", "RAdam"])
def test_parameters_are_the_same_bits_with_and_without_validation(cls, optimizer):
    result, measured = validated([1, 2], cls=cls, optimizer=optimizer)
    without = trained([1, 2], cls=cls, optimizer=optimizer)
    assert same(result, without)
    assert result.curve == without.curve
    assert measured.steps == [5, 10, 15, 20, 25, 30]
    final = [float(sum(t.double().sum() for t in state.values())) for state in result.states]
    assert [scores["mean"] for scores in measured.scores[-1]] == pytest.approx(final)
    assert [scores["row"] for scores in measured.scores[-1]] == [0.0, 1.0]


def test_a_killed_training_has_the_same_curve_but_for_seconds(tmp_path):
    path = tmp_path / "c.safetensors"
    _, straight = validated([1, 2])

    def cut(step, loss):
        if step == 20:
            raise CutError

    with pytest.raises(CutError):
        validated([1, 2], Resumption(path, every_seconds=0), cut)
    result, resumed = validated([1, 2], Resumption(path))
    assert same(result, trained([1, 2]))
    assert (resumed.steps, resumed.scores) == (straight.steps, straight.scores)
    assert resumed.seconds == sorted(resumed.seconds)
    assert resumed.seconds[2] > 0


def test_the_time_of_preparing_is_kept_over_a_restart():
    before, after = (Validation(lambda row, module: {}, [1], 0.1, CPU, t) for t in (100.0, 0.5))
    after.load_state(before.state())
    assert after.spent == 100.5


def test_points_are_on_a_log_scale_and_end_with_the_last_step():
    points = points_of(100_000, 20)
    assert 40 <= len(points) <= 42
    assert len(points_of(1500, 20)) == 40
    assert (points[0], points[-1]) == (20, 100_000)
    ratios = [b / a for a, b in zip(points[-10:-1], points[-9:], strict=True)]
    assert max(ratios) / min(ratios) < 1.05
    assert points_of(45, 10) == [10, 20, 30, 40, 45]
    assert points_of(3, 20) == [3]
    assert points_of(0, 20) == []


class Spending(Validation):
    """Each evaluation takes two seconds."""

    def _evaluated(self, replicas):
        self.clock.core += 2.0
        return []


def evaluated(whole, points=range(20, 820, 20), expected=2.0, prepared_in=0.0):
    """The points that are evaluated in a training of that many seconds."""
    measured = Spending(None, list(points), expected, CPU, prepared_in)
    for step in points:
        measured.after(step, SimpleNamespace(counted=whole * step / points[-1]), None)
    return measured


def test_all_points_are_evaluated_where_time_allows():
    assert len(evaluated(40 * 2 / validation.SHARE + 1).steps) == 40


@pytest.mark.parametrize("affordable", [1, 2, 3, 5, 13, 20, 39])
def test_where_time_is_short_points_are_left_out_evenly_and_the_limit_is_kept(affordable):
    measured = evaluated((affordable * 2 + 1) / validation.SHARE)
    assert measured.spent <= affordable * 2 + 1
    assert measured.steps[-1] == 800
    assert affordable / 2 <= len(measured.steps) <= affordable
    gaps = [b - a for a, b in zip(measured.steps[:-1], measured.steps[1:], strict=True)]
    assert max(gaps, default=20) <= 20 * math.ceil(40 / affordable)


def test_a_point_that_takes_longer_than_expected_leaves_out_others():
    measured = evaluated(11 / validation.SHARE, expected=0.01)
    assert measured.spent <= 11
    assert measured.steps[-1] == 800


def test_no_point_is_evaluated_that_exceeds_the_limit():
    assert evaluated(1.9 / validation.SHARE).steps == []
    assert evaluated(10.0 / validation.SHARE, prepared_in=8.5).steps == []
    assert evaluated(10.0 / validation.SHARE, prepared_in=11).steps == []


def test_a_short_training_has_a_fixed_limit(monkeypatch):
    monkeypatch.setattr(validation, "LEAST_SECONDS", 4.5)
    assert len(evaluated(1.0).steps) == 2


def test_steps_between_two_points_are_not_evaluated():
    measured = Spending(None, [20, 40, 2000], 0.0, CPU)
    clock = SimpleNamespace(counted=1e9)
    for step in (10, 30, 35, 50, 1990, 2000):
        measured.after(step, clock, None)
    assert measured.steps == [30, 50, 2000]
