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


def test_points_are_on_a_log_scale_and_end_with_the_last_step():
    points = points_of(100_000, 20)
    assert 30 <= len(points) <= 41
    assert (points[0], points[-1]) == (20, 100_000)
    ratios = [b / a for a, b in zip(points[-10:-1], points[-9:], strict=True)]
    assert max(ratios) / min(ratios) < 1.05
    assert points_of(45, 10) == [10, 20, 30, 40, 45]
    assert points_of(3, 20) == [3]
    assert points_of(0, 20) == []


def affordable(step, *, spent, whole, expected=0.0, points=(20, 40, 2000)):
    """Whether a point is evaluated, of a training that takes `whole` seconds in all."""
    calls = []
    score = lambda row, module: calls.append(row) or {"mean": 1.0}  # noqa: E731
    measured = Validation(score, list(points), expected, CPU)
    measured.clock.core = spent
    clock = SimpleNamespace(counted=whole * step / points[-1])
    measured.after(step, clock, training([1]).replicas)
    return bool(calls)


def test_points_that_would_exceed_the_share_are_left_out():
    assert affordable(20, spent=2.9, whole=100)
    assert not affordable(20, spent=3.1, whole=100)
    # Time for the last point is kept.
    assert affordable(20, spent=0.0, whole=100, expected=1.4)
    assert not affordable(20, spent=0.0, whole=100, expected=1.6)
    assert affordable(2000, spent=0.0, whole=100, expected=2.9)
    # A short training has a fixed limit.
    assert affordable(20, spent=validation.LEAST_SECONDS - 0.1, whole=1)
    assert not affordable(20, spent=validation.LEAST_SECONDS + 0.1, whole=1)


def test_a_step_between_two_points_is_not_evaluated():
    assert not affordable(10, spent=0.0, whole=math.inf)
    assert affordable(30, spent=0.0, whole=math.inf)
