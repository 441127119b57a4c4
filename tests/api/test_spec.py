"""Specs: commands reproduce them, and ids depend on their content."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclbench import RunSpec, UsageError
from iclbench.api.config import parse_config
from iclbench.api.options import parse_arguments, parse_seeds
from iclbench.api.spec import ResolvedSpec, canonical_json


@pytest.mark.parametrize("seeds", [0, [], [1, 1], [-1]])
def test_invalid_seeds_are_refused(seeds):
    with pytest.raises(UsageError, match="seed"):
        parse_config(RunSpec, {"model": "m", "task": "t", "seeds": seeds}, "run")


values = st.one_of(
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from("xy"), st.integers(0, 3), max_size=2),
)


arguments = st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), values, max_size=3)


@given(
    model_args=arguments,
    recipe_args=arguments,
    seeds=st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
)
def test_command_of_a_spec_reproduces_it(model_args, recipe_args, seeds):
    spec = RunSpec(
        model="m", task="t", model_args=model_args, recipe_args=recipe_args, seeds=tuple(seeds)
    )
    words = shlex.split(spec.command())
    given_options = dict(zip(words[2::2], words[3::2], strict=True))
    for option, expected in (("--model-args", model_args), ("--recipe-args", recipe_args)):
        assert parse_arguments([given_options.get(option, "")], option) == expected
    if "--seeds" in given_options:
        parsed = RunSpec(model="m", task="t", seeds=parse_seeds(given_options["--seeds"]))
        assert parsed.seeds == tuple(seeds)
    else:
        assert tuple(seeds) == RunSpec(model="m", task="t").seeds


def resolved(**changes) -> ResolvedSpec:
    return ResolvedSpec(model="m", task="t", task_version=1, origin="trained", **changes)


def test_id_depends_on_the_content():
    base = resolved(model_args={"a": 1}, seeds=(0, 1))
    assert base.id == resolved(model_args={"a": 1}, seeds=(0, 1)).id
    others = [
        {"model_args": {"a": 2}},
        {"seeds": (0,)},
        {"dtype": "float64"},
        {"eval_seed": 1},
        {"recipe_args": {"steps": 3}},
        {"metrics": ("x",)},
    ]
    for other in others:
        assert resolved(**{"model_args": {"a": 1}, "seeds": (0, 1), **other}).id != base.id


def test_checkpoint_enters_the_id_by_its_content():
    a = resolved(init="here", checkpoint_digest="1")
    assert a.id == resolved(init="there", checkpoint_digest="1").id
    assert a.id != resolved(init="here", checkpoint_digest="2").id


def test_a_checkpoint_that_was_moved_is_still_of_the_same_program():
    a = resolved(init="here", checkpoint_digest="1")
    assert a.train_key() == resolved(init="./here", checkpoint_digest="1").train_key()
    assert a.train_key() != resolved(init="here", checkpoint_digest="2").train_key()
    assert resolved(init="gradient").train_key() != resolved(init="multiply").train_key()


def test_ids_do_not_depend_on_the_order_of_arguments():
    assert resolved(model_args={"a": 1, "b": 2}).id == resolved(model_args={"b": 2, "a": 1}).id
    assert canonical_json({"b": 1, "a": 2}) == '{"a":2,"b":1}'


def test_runs_trained_as_one_program_share_a_key():
    a = resolved(recipe_args={"learning_rate": 1.0, "steps": 3}, seeds=(0,))
    assert a.train_key() == resolved(
        recipe_args={"learning_rate": 2.0, "steps": 3}, seeds=(1, 2)
    ).train_key()  # fmt: skip
    assert a.train_key() != resolved(recipe_args={"steps": 4}).train_key()


REQUEST = RunSpec(model="m", task="t", model_args={"a": [1, "x y"]}, seeds=(3, 7), freeze=("a.*",))


def test_a_command_is_read_back():
    assert RunSpec.from_command(REQUEST.command()) == REQUEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "iclbench run",
        "iclbench verify --model m --task t",
        "iclbench run --model m --task t; rm -r .",
        "iclbench run --model m --task t --out elsewhere",
        "iclbench run --model m --task t --model-args @/etc/passwd",
        "iclbench run --task t --model m",
        "iclbench run --model m --task t --recipe quick",
        "iclbench run --model m  --task t",
        "iclbench run --model 'm --task t",
        "iclbench run --model m --task t\n```",
    ],
)
def test_any_other_text_is_no_command(text):
    with pytest.raises(UsageError, match="command"):
        RunSpec.from_command(text)
