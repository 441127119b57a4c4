"""Fields by dotted names: one that does not exist is never taken for another."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run
from iclbench.api.config import parse_config
from iclbench.leaderboards.values import Value
from iclbench.sweeps.fields import field_of


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


@pytest.mark.parametrize("name", ["dtype.typo", "model.x", "dtype.", "task_args.", "modl"])
def test_a_name_of_no_field_is_refused(record, name):
    with pytest.raises(UsageError, match=r"no fields|unknown field|names no argument"):
        field_of(record, name)
    for content in ({"where": {name: 1}}, {"where": {"model": "zero"}, "lacks": [name]}):
        with pytest.raises(UsageError, match=r"no fields|unknown field|names no argument"):
            parse_config(Value, {"metric": "squared_error", **content}, "finding")
