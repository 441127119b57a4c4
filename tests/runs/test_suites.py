"""Suites as plans: what runs on each board, what can't, what it costs, and which records count."""

from __future__ import annotations

import pytest

from iclbench import PluginError, Suite, UsageError, run
from iclbench.api.errors import UnsupportedError
from iclbench.runs.suites import (
    board_keys,
    budgets_of,
    find_suite,
    record_key,
    records_by_board,
    resolve_suite,
)

SUITE = Suite(
    name="tiny",
    version=1,
    summary="three boards",
    defaults={"chance": "zero", "eval_prompts": 32, "seeds": 2, "budget": "30s"},
    board=(
        {"name": "regression", "task": "least-squares", "task_args": {"dim": 2, "examples": 4}},
        {"name": "system", "task": "linear-system", "task_args": {"sizes": "2-3"},
         "reference": "cholesky"},
        {"name": "stepped", "task": "ridge", "budget": None},
    ),
)  # fmt: skip


def cells(models, **changes):
    resolved = resolve_suite(SUITE, models, dict.fromkeys(models, changes))
    return {(cell.board.name, cell.model): cell for cell in resolved}


def test_every_board_has_its_solvers_and_the_models_that_can_do_it():
    resolved = cells(["transformer"])
    assert {key for key, cell in resolved.items() if cell.extra} == {
        ("regression", "zero"), ("system", "zero"), ("system", "cholesky"), ("stepped", "zero")
    }  # fmt: skip
    trained = resolved["regression", "transformer"].plan.spec
    assert (trained.budget, trained.seeds, trained.eval_prompts) == ("30s", (0, 1), 32)
    refused = resolved["system", "transformer"]
    assert refused.plan is None
    assert refused.unsupported == "it is built for prompts of one size, and the task has several"


def test_a_solver_that_is_asked_for_is_not_extra():
    resolved = cells(["zero"])
    assert not any(cell.extra for (_, model), cell in resolved.items() if model == "zero")
    assert len(resolved) == 4


def test_changes_apply_to_the_models_and_not_to_the_solvers():
    resolved = cells(["baseconv"], seeds=1, model_args={"layers": 1})
    assert resolved["regression", "baseconv"].plan.spec.seeds == (0,)
    assert resolved["regression", "zero"].plan.spec.model_args == {}


def test_a_wrong_argument_is_an_error_and_no_lack_of_the_model():
    cell = cells(["transformer"], model_args={"layer": 1})["regression", "transformer"]
    assert cell.unsupported is None
    assert "did you mean 'layers'" in str(cell.error)
    assert not isinstance(cell.error, UnsupportedError)


@pytest.mark.parametrize("field", ["task_args", "dtype", "eval_seed"])
def test_what_defines_a_board_can_not_be_changed(field):
    with pytest.raises(UsageError, match=f"the suite tiny sets {field}; it can't be changed"):
        cells(["zero"], **{field: {}})


def test_the_cost_is_seeds_times_budgets():
    plans = [cell.plan for cell in cells(["transformer"]).values() if cell.plan is not None]
    assert [(str(budget), budget.kind) for budget in budgets_of(plans)] == [("1m", "core time")]
    plans[0] = cells(["baseconv"], budget="gpu-1h")["regression", "baseconv"].plan
    assert sorted(str(budget) for budget in budgets_of(plans)) == ["1m", "gpu-2h"]
    assert budgets_of([]) == []


def test_records_of_other_prompts_are_on_no_board(tmp_path):
    board = SUITE.boards[0]
    fields = board.request("zero").model_dump()
    right = run(out=tmp_path, **fields)
    others = [run(out=tmp_path, **{**fields, **change})
              for change in ({"eval_seed": 1}, {"eval_prompts": 33}, {"dtype": "float64"},
                             {"task_args": {"dim": 2, "examples": 5}})]  # fmt: skip
    assert records_by_board(SUITE, [right, *others]) == {"regression": [right]}
    assert board_keys(SUITE)["regression"] == record_key(right)


def test_a_suite_is_a_plugin_s_object_or_file_or_a_path(tmp_path, provide):
    path = tmp_path / "tiny.toml"
    path.write_text(
        'name = "by-file"\nversion = 1\nsummary = "s"\n'
        '[[board]]\nname = "a"\ntask = "ridge"\nchance = "zero"\n'
    )
    provide("suite", "tiny", SUITE)
    provide("suite", "by-file", path)
    provide("suite", "odd", "iclbench.display.run:run")
    provide("suite", "other-name", SUITE)
    assert find_suite("tiny") is SUITE
    assert find_suite("by-file") == find_suite(str(path))
    with pytest.raises(UsageError, match="unknown suite 'tinny'; did you mean 'tiny'"):
        find_suite("tinny")
    with pytest.raises(PluginError, match=r"'odd' of test-plugin .* is not an iclbench\.Suite"):
        find_suite("odd")
    with pytest.raises(PluginError, match="calls itself 'tiny'"):
        find_suite("other-name")


def test_boards_with_the_same_prompts_are_refused():
    short, longer = (
        {"name": name, "task": "ridge", "chance": "zero", "recipe_args": {"steps": steps}}
        for name, steps in (("short", 2), ("long", 20))
    )
    suite = Suite(name="twice", version=1, summary="s", board=(short, longer))
    with pytest.raises(UsageError, match="twice: the boards short and long have the same prompts"):
        resolve_suite(suite, ["zero"], {})
    with pytest.raises(UsageError, match="put them into two suites"):
        records_by_board(suite, [])


@pytest.mark.parametrize("end", ["chance", "reference"])
def test_a_trained_model_is_neither_chance_nor_the_reference(end):
    """Whoever makes a suite could train what counts as 0 or as 1."""
    board = {"name": "a", "task": "ridge", "chance": "zero", end: "baseconv"}
    suite = Suite(name="tiny", version=1, summary="s", board=(board,))
    message = f"suite tiny: board a: baseconv is trained: the {end} must be a solver"
    with pytest.raises(UsageError, match=message):
        resolve_suite(suite, ["averaging"], {})
    with pytest.raises(UsageError, match=message):
        records_by_board(suite, [])
