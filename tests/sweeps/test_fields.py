"""Fields by dotted names: one that does not exist is never taken for another."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from iclbench import RunSpec, UsageError, run
from iclbench.api.config import parse_config
from iclbench.leaderboards.values import Value
from iclbench.runs.plan import resolve
from iclbench.sweeps.fields import field_of, omitted_arguments
from iclbench.sweeps.figure import Figure


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    task_args = {"dim": 2, "examples": 4}
    return run("zero", "least-squares", task_args=task_args, eval_prompts=8,
               out=tmp_path_factory.mktemp("results"))  # fmt: skip


def test_a_field_is_that_of_the_spec_or_an_argument_or_the_state(record):
    assert field_of(record, "dtype") == "float32"
    assert field_of(record, "task_args.dim") == 2
    assert field_of(record, "task_args.nonesuch") is None
    assert field_of(record, "state_bytes") is record.state_bytes


def spec_of(model="transformer", task="least-squares", **changes):
    return resolve(RunSpec(model=model, task=task, recipe="smoke", **changes)).spec


def test_an_argument_that_a_spec_omits_has_its_default():
    record = SimpleNamespace(spec=spec_of())
    assert "positions" not in record.spec.model_args
    assert field_of(record, "model_args.positions") == "learned"
    assert field_of(record, "model_args.nonesuch") is None
    assert field_of(record, "recipe_args.accumulate") == 1
    assert field_of(record, "recipe_args.stages") == []
    constructed = spec_of("gd-transformer", "categorical", weights="functional-gd")
    assert field_of(SimpleNamespace(spec=constructed), "weights_args.degree") == 2
    # It is no argument of any other spec: nothing is trained, and the steps are those of a budget.
    assert field_of(SimpleNamespace(spec=spec_of("zero")), "recipe_args.accumulate") is None
    assert field_of(SimpleNamespace(spec=spec_of(budget="1m")), "recipe_args.steps") is None
    assert field_of(SimpleNamespace(spec=constructed), "grader_args.cache") is None


def test_an_argument_that_a_spec_omits_is_unknown_without_its_plugin():
    spec = spec_of().model_copy(update={"model": "gone", "task": "gone"})
    assert omitted_arguments(spec, "model_args") == omitted_arguments(spec, "task_args") == {}
    assert field_of(SimpleNamespace(spec=spec), "model_args.positions") is None


def test_a_figure_may_name_an_argument_that_every_spec_omits():
    specs = [spec_of()]
    for name in ("model_args.positions", "recipe_args.accumulate"):
        Figure(x="model_args.layers", panels=(name,)).require_arguments(specs)
    for name in ("model_args.position", "recipe_args.cores"):
        with pytest.raises(UsageError, match="unknown argument in"):
            Figure(x="model_args.layers", panels=(name,)).require_arguments(specs)


@pytest.mark.parametrize("name", ["dtype.typo", "model.x", "dtype.", "task_args.", "modl"])
def test_a_name_of_no_field_is_refused(record, name):
    with pytest.raises(UsageError, match=r"no fields|unknown field|names no argument"):
        field_of(record, name)
    for content in ({"where": {name: 1}}, {"where": {"model": "zero"}, "lacks": [name]}):
        with pytest.raises(UsageError, match=r"no fields|unknown field|names no argument"):
            parse_config(Value, {"metric": "squared_error", **content}, "finding")
