"""How a budget is written, and as a part of a request."""

from __future__ import annotations

import pytest

from iclbench import RunSpec, UsageError
from iclbench.api.budget import Budget
from iclbench.api.config import parse_config


@pytest.mark.parametrize(
    ("text", "seconds", "on_gpu", "written"),
    [
        ("30s", 30, False, "30s"),
        ("60s", 60, False, "1m"),
        ("90m", 5400, False, "90m"),
        ("120m", 7200, False, "2h"),
        ("010m", 600, False, "10m"),
        ("gpu-1h", 3600, True, "gpu-1h"),
        ("gpu-3600s", 3600, True, "gpu-1h"),
        ("168h", 604_800, False, "168h"),
    ],
)
def test_a_budget_is_a_duration_with_one_form(text, seconds, on_gpu, written):
    budget = Budget.parse(text)
    assert budget == (seconds, on_gpu)
    assert str(budget) == written
    assert Budget.parse(written) == budget


@pytest.mark.parametrize(
    "text",
    ["0", "-3m", "10", "abc", "", "0s", "1.5h", "10 m", "10M", "gpu-", "1h30m", "10m\n", "١m"],
)
def test_what_is_not_a_duration_is_refused_in_a_line(text):
    with pytest.raises(UsageError) as caught:
        parse_config(RunSpec, {"model": "m", "task": "t", "budget": text}, "run")
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("run: budget: it must be ")


def test_a_budget_of_more_than_a_week_is_refused():
    with pytest.raises(UsageError, match="between 1s and 168h per seed"):
        parse_config(RunSpec, {"model": "m", "task": "t", "budget": "1000h"}, "run")


def test_equal_budgets_make_equal_requests():
    one, other = (RunSpec(model="m", task="t", budget=text) for text in ("3600s", "1h"))
    assert one == other
    assert "--budget 1h" in one.command()


def test_a_request_without_a_budget_is_written_as_before():
    assert "budget" not in RunSpec(model="m", task="t").model_dump()


def test_several_seeds_together():
    assert str(Budget.parse("10m").times(6)) == "1h"
    assert Budget.parse("10m").kind == "core time"
    assert Budget.parse("gpu-1h").kind == "device time"
