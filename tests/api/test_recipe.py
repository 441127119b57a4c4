"""Recipes: invalid ones are refused; later fields do not affect ids."""

from __future__ import annotations

import pytest

from iclbench import Recipe, UsageError, run, smoke_recipe
from iclbench.api.config import parse_config


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"accumulate": 5}, "can't be divided into 5 equal parts"),
        ({"autocast": "float16"}, "autocast"),
    ],
)
def test_invalid_recipe_is_refused(args, reason):
    with pytest.raises(UsageError, match=reason):
        parse_config(Recipe, {"steps": 1, "batch": 12, **args}, "recipe")


def test_run_without_accumulation_and_autocast_keeps_its_id(tmp_path):
    record = run(model="transformer", task="least-squares", recipe="smoke", seeds=1, out=tmp_path,
                 recipe_args={"steps": 1}, eval_prompts=8)  # fmt: skip
    assert not {"accumulate", "autocast"} & set(record.spec.recipe_args)


def test_smoke_recipe_of_a_task_differs_in_the_task_s_arguments_alone():
    from iclbench.api.recipe import SMOKE

    recipe = smoke_recipe(length=8)
    assert recipe.task_args == {"length": 8}
    assert SMOKE.task_args == {}
    assert recipe.model_dump(exclude={"task_args"}) == SMOKE.model_dump(exclude={"task_args"})
