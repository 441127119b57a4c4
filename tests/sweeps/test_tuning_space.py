"""The space of a search."""

from __future__ import annotations

import pytest
from test_tuning import plan_of

from iclbench import RunSpec, UsageError
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.sweeps.tuning.points import points_of
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings
from iclbench.sweeps.tuning.space import require_free, search_space


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


def test_search_args_that_the_model_lacks_are_refused(monkeypatch):
    plan = plan_of()
    monkeypatch.setattr(plan.architecture, "search_args", {"depth": (1, 2)})
    with pytest.raises(UsageError, match=r"^search_args of baseconv names depth, which it lacks$"):
        search_space(plan, {})
    monkeypatch.setattr(plan.architecture, "search_args", ("layers",))
    with pytest.raises(UsageError, match="search_args of baseconv must map arguments to values"):
        search_space(plan, {})


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
