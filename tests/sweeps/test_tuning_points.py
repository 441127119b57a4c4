"""The points of a search."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest
from test_tuning import plan_of

from iclbench import UsageError
from iclbench.sweeps.tuning.points import PER_PROGRAM, _in_range, points_of
from iclbench.sweeps.tuning.space import search_space
from iclbench.sweeps.tuning.trials import MOST_TRIALS


def test_points_of_thousands_of_trials_are_made_in_seconds():
    plan = plan_of(recipe="quick", recipe_args={}, budget="10s")
    space = search_space(plan, {})
    started = time.process_time()
    points = points_of(space, plan, MOST_TRIALS, 0)
    assert time.process_time() - started < 5
    programs = Counter(point.program for point in points)
    assert max(programs.values()) == PER_PROGRAM
    assert points[:40] == points_of(space, plan, 40, 0)


@pytest.mark.parametrize("trials", [1, 3, 4, 5, 12, 13])
def test_points_are_in_the_space_distinct_and_the_recipe_s_own_comes_first(trials):
    plan = plan_of()
    space = search_space(plan, {})
    points = points_of(space, plan, trials, 0)
    assert len(points) == trials
    assert all(space.contains(p.model_args, p.recipe_args) for p in points)
    first = points[0]
    assert first.recipe_args["learning_rate"] == plan.recipe.learning_rate
    assert first.model_args == {
        name: plan.spec.model_args[name] for name in ("layers", "width", "init_std")
    }
    texts = [json.dumps([p.model_args, p.recipe_args]) for p in points]
    assert len(set(texts)) == trials
    # Rates and scales vary within a program, everything else between programs.
    programs = [[p for p in points if p.program == i] for i in range(points[-1].program + 1)]
    assert all(len(group) <= PER_PROGRAM for group in programs)
    for group in programs:
        shapes = {(p.model_args["layers"], p.model_args["width"], p.recipe_args["schedule"],
                   p.recipe_args["optimizer"]) for p in group}  # fmt: skip
        assert len(shapes) == 1


def test_rates_are_drawn_on_a_log_scale():
    assert [_in_range((1e-4, 1.0), number) for number in (0.0, 0.5)] == [1e-4, 1e-2]


def test_points_follow_from_the_seed_of_the_search():
    plan = plan_of()
    space = search_space(plan, {})
    assert points_of(space, plan, 8, 3) == points_of(space, plan, 8, 3)
    assert points_of(space, plan, 8, 3) != points_of(space, plan, 8, 4)


@pytest.mark.parametrize("trials", [1, 4, 5, 9, 12])
def test_more_trials_keep_the_points_of_fewer(trials):
    plan = plan_of()
    space = search_space(plan, {})
    assert points_of(space, plan, 40, 0)[:trials] == points_of(space, plan, trials, 0)


def test_a_space_of_one_point_has_one_trial():
    plan = plan_of(recipe_args={"learning_rate": 1e-3, "schedule": "cosine", "optimizer": "adam"},
                   model_args={"layers": 1, "width": 8, "init_std": 0.1})  # fmt: skip
    assert len(points_of(search_space(plan, {}), plan, 12, 0)) == 1


def test_the_recipe_s_own_point_is_searched_where_arguments_are_lists(monkeypatch):
    plan = plan_of(model="hybrid")
    mixers = tuple(plan.config.mixers)
    searched = {"mixers": (mixers, ("baseconv", "attention"))}
    monkeypatch.setattr(type(plan.architecture), "search_args", searched, False)
    space = search_space(plan, {})
    assert space.model_args == {"mixers": (list(mixers), ["baseconv", "attention"])}
    assert points_of(space, plan, 4, 0)[0].model_args["mixers"] == list(mixers)


@pytest.mark.parametrize("trials", [0, 10_001])
def test_a_search_has_some_trials(trials):
    plan = plan_of()
    with pytest.raises(UsageError, match=f"trials={trials}: a search has 1 to 10,000 trials"):
        points_of(search_space(plan, {}), plan, trials, 0)


def test_a_scale_outside_the_usual_range_is_searched_around():
    plan = plan_of(model="lstm")
    assert plan.config.init_std == 1.0
    space = search_space(plan, {})
    assert space.init_std == (pytest.approx(1 / 3), 3.0)
    assert points_of(space, plan, 4, 0)[0].model_args["init_std"] == 1.0


@pytest.mark.parametrize("trials", [8, 12, 40])
def test_no_shape_is_drawn_again_while_others_are_left(trials):
    """Sobol's points may fall into one cell of a small space."""
    plan = plan_of()
    space = search_space(plan, {})
    for seed in range(20):
        by_program = {}
        for point in points_of(space, plan, trials, seed):
            shape = dict(point.model_args) | dict(point.recipe_args)
            del shape["learning_rate"], shape["init_std"]
            by_program.setdefault(point.program, set()).add(json.dumps(shape))
        assert all(len(shapes) == 1 for shapes in by_program.values())
        assert len(set.union(*by_program.values())) == len(by_program)


def test_shapes_are_drawn_again_where_the_space_has_few():
    plan = plan_of(model_args={"layers": 1, "width": 8}, recipe_args={"optimizer": "adam"})
    space = search_space(plan, {})
    points = points_of(space, plan, 40, 0)
    assert len(points) == 40
    assert {p.recipe_args["schedule"] for p in points[:8]} == {"cosine", "constant"}
    assert points[:8] == points_of(space, plan, 8, 0)


def test_a_range_may_be_wider_than_a_float():
    assert _in_range((1e-300, 1e300), 0.5) == 1.0
    assert _in_range((1e-4, 1e-2), 0.5) == 1e-3
