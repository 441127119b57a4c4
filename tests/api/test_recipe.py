"""Recipes: invalid ones are refused; later fields do not affect ids."""

from __future__ import annotations

import pytest

from iclbench import Recipe, UsageError, run
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
