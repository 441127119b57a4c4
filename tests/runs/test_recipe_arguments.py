"""Arguments of recipes: those that a model takes, and those that mean something else in it."""

from __future__ import annotations

import pytest
from pydantic import field_validator, model_validator
from small_runs import TINY

from iclbench import Config, RunSpec, UsageError, run
from iclbench.runs.plan import resolve
from iclbench.runs.recipe_arguments import config_with, split_by_use
from iclbench_looped_transformer.architecture import LoopedConfig


class Sized(Config):
    """A width, heads that divide it, and a kernel that is a number here."""

    width: int = 16
    heads: int = 1
    kernel: int = 4

    @model_validator(mode="after")
    def _divides(self) -> Sized:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide {self.width}")
        return self


class Needy(Config):
    """A configuration with a required argument."""

    size: int
    kernel: int = 4

    @field_validator("kernel")
    @classmethod
    def _is_small(cls, kernel: int) -> int:
        if kernel > 9:
            raise ValueError("a kernel has at most 9 taps")
        return kernel


def test_names_that_a_model_lacks_and_those_that_are_given_are_left_out():
    values = {"width": 8, "layers": 2, "heads": 4}
    assert split_by_use(values, Sized, {"heads": 2}) == ({"width": 8}, {})


def test_an_argument_that_is_refused_for_itself_is_left_out_with_its_reason():
    taken, refused = split_by_use({"width": 8, "kernel": "softmax"}, Sized, {})
    assert taken == {"width": 8}
    assert "valid integer" in refused.pop("kernel")
    assert not refused
    taken, refused = split_by_use({"kernel": 12}, Needy, {"size": 1})
    assert (taken, refused) == ({}, {"kernel": "kernel: a kernel has at most 9 taps (got 12)"})


def test_arguments_that_only_clash_with_each_other_or_the_user_s_stay():
    # 8 heads fit the default width and not that of the user, who must choose.
    assert split_by_use({"heads": 8}, Sized, {"width": 12}) == ({"heads": 8}, {})
    assert split_by_use({"kernel": 3}, Needy, {}) == ({"kernel": 3}, {})


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({}, {"width": 24, "heads": 3, "kernel": "softmax"}),
        ({"width": 24}, {"heads": 3, "kernel": "softmax"}),
    ],
)
def test_an_argument_that_needs_others_is_not_left_out_with_one_that_is_refused(given, values):
    # Three heads do not divide the default width.
    taken, refused = split_by_use(values, Sized, given)
    assert taken == {name: value for name, value in values.items() if name != "kernel"}
    assert refused.keys() == {"kernel"}


def test_the_reason_is_that_of_the_user_s_model():
    values = {"mixer_args": {"baseconv": {"taps": 3}}}
    _, refused = split_by_use(values, LoopedConfig, {"mixer": "baseconv"})
    assert "mixer baseconv: unknown field 'baseconv'" in refused["mixer_args"]


def test_a_plan_keeps_the_default_and_says_so(capsys, tmp_path):
    tiny = {**TINY, "task": "compression", "task_args": {"pool": 64}, "recipe": "quick"}
    tiny |= {"recipe_args": {"steps": 1, "warmup": 0}, "seeds": (0,), "eval_prompts": 4}
    plan = resolve(RunSpec(model="looped-transformer", **tiny))
    assert plan.refused.keys() == {"mixer_args"}
    assert plan.spec.model_args["mixer"] == "attention"
    run("looped-transformer", **tiny, out=tmp_path)
    said = capsys.readouterr().err
    assert "compression: recipe quick sets mixer_args, which looped-transformer refuses" in said
    assert "mixer attention: unknown field 'baseconv'" in said


def test_an_argument_that_the_user_sets_is_still_refused():
    args = {"mixer_args": {"taps": 3}}
    request = RunSpec(model="looped-transformer", task="least-squares", model_args=args)
    with pytest.raises(UsageError, match="mixer attention: unknown field 'taps'"):
        resolve(request)


def test_a_clash_with_what_the_user_gave_names_the_recipe_s_arguments():
    spec = {"model": "transformer", "task": "stories", "recipe": "quick"}
    with pytest.raises(
        UsageError,
        match=r"8 heads do not divide the width 12 \(recipe quick sets .*heads=8.*s them\)$",
    ):
        resolve(RunSpec(**spec, model_args={"width": 12}))
    assert (
        resolve(RunSpec(**spec, model_args={"width": 12, "heads": 2})).spec.model_args["heads"] == 2
    )
    with pytest.raises(UsageError, match=r"do not divide the width 12$"):
        resolve(RunSpec(**spec, model_args={"width": 12, "heads": 5}))


class Width(Config):
    width: int
    heads: int = 1

    @model_validator(mode="after")
    def _divides(self):
        if self.width % self.heads:
            raise ValueError("heads do not divide the width")
        return self


def test_a_required_argument_that_the_recipe_sets_does_not_hide_the_recipe():
    recipe = ("narrow", {"width": 4})
    with pytest.raises(UsageError, match=r"divide the width \(recipe narrow sets width=4;"):
        config_with(Width, recipe, {"heads": 3}, "model")
    with pytest.raises(UsageError, match=r"heads: [^(]*\(got 'x'\)$"):
        config_with(Width, recipe, {"heads": "x"}, "model")
