"""The space of a search, and the points that it tries."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest
from test_tuning import plan_of

from iclbench import RunSpec, UsageError
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings
from iclbench.sweeps.tuning.space import (
    PER_PROGRAM,
    _in_range,
    points_of,
    require_free,
    search_space,
)
from iclbench.sweeps.tuning.trials import MOST_TRIALS


def test_the_default_space_has_depth_width_and_the_recipe_s_own_settings():
    plan = plan_of(recipe="quick", recipe_args={}, budget="10s")
    space = search_space(plan, {})
    assert space.model_args == {"layers": (1, 2, 4, 8), "width": (16, 32, 64, 128)}
    assert space.learning_rate == (7e-5, 2.1e-2)
    assert space.init_std == (0.02, 0.2)
    assert space.schedules == ("cosine", "constant")
    assert space.optimizers[0].name == "adam"
    assert space.optimizers[0].args["eps"] == 1e-8


def test_the_depth_of_gd_attention_is_its_number_of_blocks():
    request = RunSpec(model="gd-transformer", task="categorical", recipe="quick")
    assert search_space(resolve(request), {}).model_args == {"blocks": (1, 2, 3, 4)}


def test_points_of_thousands_of_trials_are_made_in_seconds():
    plan = plan_of(recipe="quick", recipe_args={}, budget="10s")
    space = search_space(plan, {})
    started = time.process_time()
    points = points_of(space, plan, MOST_TRIALS, 0)
    assert time.process_time() - started < 5
    programs = Counter(point.program for point in points)
    assert max(programs.values()) == PER_PROGRAM
    assert points[:40] == points_of(space, plan, 40, 0)


def test_search_args_that_the_model_lacks_are_refused(monkeypatch):
    plan = plan_of()
    monkeypatch.setattr(plan.architecture, "search_args", {"depth": (1, 2)})
    with pytest.raises(UsageError, match=r"^search_args of baseconv names depth, which it lacks$"):
        search_space(plan, {})
    monkeypatch.setattr(plan.architecture, "search_args", ("layers",))
    with pytest.raises(UsageError, match="search_args of baseconv must map arguments to values"):
        search_space(plan, {})


def test_a_range_may_be_wider_than_a_float():
    assert _in_range((1e-300, 1e300), 0.5) == 1.0
    assert _in_range((1e-4, 1e-2), 0.5) == 1e-3


def test_what_is_given_is_not_searched():
    given = {"learning_rate": 3e-3, "schedule": "step", "optimizer": "sgd"}
    plan = plan_of(recipe_args=given, model_args={"width": 12, "init_std": 0.1})
    space = search_space(plan, {})
    assert space.learning_rate == (3e-3, 3e-3)
    assert space.schedules == ("step",)
    assert [choice.name for choice in space.optimizers] == ["sgd"]
    assert space.init_std == (0.1, 0.1)
    assert list(space.model_args) == ["layers"]


@pytest.mark.parametrize(("given", "changes", "name"), [
    ({"model_args": {"layers": 2}}, {"model_args": {"layers": [1, 2], "width": [8]}}, "layers"),
    ({"model_args": {"init_std": 0.1}}, {"init_std": [0.1, 0.2]}, "init_std"),
    ({"recipe_args": {"learning_rate": 3e-3}}, {"learning_rate": [1e-3, 1e-2]}, "learning_rate"),
    ({"recipe_args": {"optimizer": "sgd"}}, {"optimizers": ["adam"]}, "optimizer"),
    ({"recipe_args": {"schedule": "step"}}, {"schedules": ["cosine"]}, "schedule"),
])  # fmt: skip
def test_what_is_given_cant_be_searched(given, changes, name):
    with pytest.raises(UsageError, match=f"^{name} can't be both given and searched"):
        require_free(changes, given.get("model_args", {}), given.get("recipe_args", {}))
    require_free({**changes, "model_args": {"width": [8]}, "init_std": None}, {"layers": 2}, {})


def test_an_argument_both_given_and_searched_is_refused_before_any_trial(tmp_path):
    plan = plan_of(recipe_args={"steps": 40, "learning_rate": 1e-3})
    search = SearchSettings(trials=2, space={"learning_rate": [1e-3, 1e-2]})
    with pytest.raises(UsageError, match="learning_rate can't be both given and searched"):
        tune(plan, Settings(tmp_path), search)
    assert not list(tmp_path.iterdir())


def test_given_arguments_of_the_optimizer_fix_the_optimizer():
    plan = plan_of(recipe_args={"optimizer_args": {"eps": 1e-6}})
    (choice,) = search_space(plan, {}).optimizers
    assert (choice.name, choice.args["eps"]) == ("adam", 1e-6)


def test_an_argument_that_a_spec_omits_can_be_searched():
    plan = plan_of(model="transformer", model_args={"layers": 1, "width": 16})
    space = search_space(plan, {"model_args": {"positions": ["learned", "none"]}})
    assert points_of(space, plan, 1, 0)[0].model_args["positions"] == "learned"


def test_an_optimizer_that_does_not_take_the_model_is_left_out():
    """Muon takes matrices only; Gauss–Newton takes another kind of recipe than the others."""
    assert "muon" not in [c.name for c in search_space(plan_of(), {}).optimizers]
    newton = {"optimizer": "gauss-newton", "batch": 64}
    assert len(search_space(plan_of(recipe_args=newton), {}).optimizers) == 1


def test_an_architecture_may_say_what_is_searched(monkeypatch):
    plan = plan_of()
    monkeypatch.setattr(type(plan.architecture), "search_args", {"mlp_ratio": (1, 2)}, False)
    # The default is a value too.
    assert search_space(plan, {}).model_args == {"mlp_ratio": (1, 2, 4)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": [1e-2, 1e-3]}, "is empty"),
        ({"rates": [1]}, "unknown field 'rates'"),
        ({"model_args": {"depth": [1]}}, "baseconv has no argument 'depth'"),
        ({"model_args": {"layers": []}}, "layers has no values"),
        ({"optimizers": ["adm"]}, "did you mean 'adam'"),
        ({"optimizers": []}, "at least 1 item"),
        ({"schedules": ["linear"]}, "schedules"),
        ({"optimizers": "[adam]"}, r"optimizers: a list is needed, such as \["),
        ({"learning_rate": 1e-3}, r"learning_rate: a list is needed, such as \[1e-4,1e-2\]"),
        ({"model_args": {"layers": 2}}, r"model_args\.layers: a list is needed, such as \[1,2,4\]"),
    ],
)
def test_a_space_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        search_space(plan_of(), changes)


def test_a_range_of_initial_scales_is_refused_for_a_model_without_one():
    plan = plan_of(model="gd-transformer", task="categorical", task_args={})
    assert search_space(plan, {}).init_std is None
    with pytest.raises(UsageError, match="space: gd-transformer has no argument 'init_std'"):
        search_space(plan, {"init_std": [0.1, 0.2]})


def test_a_plan_that_trains_nothing_has_no_space():
    with pytest.raises(UsageError, match="nothing is trained"):
        search_space(plan_of(model="zero"), {})


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
