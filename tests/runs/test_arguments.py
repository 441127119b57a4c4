"""Arguments in the form of a spec, and the tuning documents that hold them so."""

from __future__ import annotations

import pytest
from small_runs import TINY

from iclbench.api.spec import RunSpec, digest_of
from iclbench.runs.arguments import given_arguments, in_normal_form
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings

REQUEST = RunSpec(
    **TINY,
    model="transformer",
    model_args={"layers": 1, "width": 8.0, "positions": "learned"},
    recipe_args={"steps": 20.0, "optimizer_args": {"eps": 1e-6}, "accumulate": 1},
)


@pytest.fixture(scope="module")
def plan():
    return resolve(REQUEST)


def test_given_arguments_have_the_values_of_the_plan_and_defaults_that_a_spec_omits(plan):
    given = given_arguments(plan, "model_args")
    assert digest_of(given) == digest_of({"layers": 1, "width": 8, "positions": "learned"})
    given = given_arguments(plan, "recipe_args")
    optimizer_args = plan.spec.recipe_args["optimizer_args"]
    expected = {"steps": 20, "optimizer_args": optimizer_args, "accumulate": 1}
    assert digest_of(given) == digest_of(expected)
    assert optimizer_args["eps"] == 1e-6


def test_invalid_arguments_stay_as_they_are(plan):
    assert in_normal_form(plan, "model_args", {"width": 4.0}) == {"width": 4}
    for args in ({"width": "wide"}, {"depth": 4.0}):
        assert in_normal_form(plan, "model_args", args) == args
    untrained = resolve(RunSpec(**TINY, model="zero"))
    assert in_normal_form(untrained, "recipe_args", {"steps": 3.0}) == {"steps": 3.0}


def test_a_tuning_holds_given_arguments_in_this_form(plan, tmp_path):
    document = tune(plan, Settings(tmp_path), SearchSettings(trials=1))
    assert digest_of(document.base_model_args) == digest_of(given_arguments(plan, "model_args"))
    assert digest_of(document.base_recipe_args) == digest_of(given_arguments(plan, "recipe_args"))
