"""Costs: the hours and operations of each cell, their sums, and what digits cost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from iclbench import RecordStore, RunSpec, run
from iclbench.display.costs import costs_table, digits_table
from iclbench.display.table import Cell, value_of
from iclbench.leaderboards.costs import CellCost, _tuning_seconds, costs_of, digits_of, sums_of
from iclbench.leaderboards.curves import cost_of_digits
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench.runs.tuned import tuned
from iclbench.sweeps.tuning.search import tune
from iclbench.sweeps.tuning.settings import SearchSettings

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "eval_prompts": 32}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    run(model="zero", **TINY, out=out)
    run(model="lsa", **TINY, seeds=3, out=out)
    # One tuning is used by two records.
    plan = resolve(RunSpec(model="elsa", **TINY, seeds=(0, 1)))
    space = {"optimizers": ["adam"], "model_args": {"layers": [0]}}
    document = tune(plan, Settings(out), SearchSettings(trials=2, space=space))
    for seeds in ((0, 1), (0, 1, 2)):
        plan = resolve(RunSpec(model="elsa", **TINY, seeds=seeds))
        run_plans([tuned(plan, document)], Settings(out))
    return out


@pytest.fixture(scope="module")
def records(folder):
    return [read_record(path) for path in RecordStore(folder).paths()]


def test_costs_are_those_of_all_seeds_and_a_tuning_counts_once(records):
    cells = costs_of(records)
    assert [cell.seeds for cell in cells if cell.model.startswith("lsa")] == [3]
    (lsa,) = [cell for cell in cells if cell.model.startswith("lsa")]
    (record,) = [r for r in records if r.spec.model == "lsa"]
    assert lsa.hours == pytest.approx(3 * record.budget.core_seconds / 3600)
    assert lsa.operations == 3 * record.operations.training
    assert lsa.tuning_hours == 0
    tuning = next(r.tuning for r in records if r.tuning)
    assert sum(cell.tuning_hours for cell in cells) * 3600 == pytest.approx(
        tuning.document["cost"]["core_seconds"]
    )
    assert len(cells) == 3


def test_tuning_on_a_gpu_costs_the_device_s_time():
    cost = {"core_seconds": 9.0, "wall_seconds": 9.0}
    assert _tuning_seconds({"cost": cost}, on_gpu=True) == (9.0, False)
    assert _tuning_seconds({"cost": {**cost, "device_seconds": 4.0}}, on_gpu=False) == (4.0, True)
    assert _tuning_seconds({"cost": "much"}, on_gpu=True) == (None, True)


def test_a_tuning_whose_cost_is_unknown_is_said_and_adds_no_kind_of_hours():
    cell = CellCost("b", "m", "gpu-1h", 1, 1, 1.0, None, None, on_gpu=True, tuned_on_gpu=True)
    (device,) = sums_of([cell])
    assert "of which 1 training and 0 tuning" in device
    assert "; hours not measured: those of 1 tuning" in device


def test_a_tuning_on_a_cpu_of_a_row_on_a_gpu_is_counted_in_core_hours():
    cell = CellCost("b", "m", "gpu-1h", 1, 1, 1.0, 2.0, None, on_gpu=True, tuned_on_gpu=False)
    core, device = sums_of([cell])
    assert core.startswith("0 trained rows: 2 core hours, of which 0 training and 2 tuning")
    assert device.startswith("1 trained row: 1 device hours, of which 1 training and 0 tuning")
    (row,) = costs_table([cell]).rows
    assert row["tuning"] == Cell("2 core", 2.0)


def test_no_tuning_and_an_unknown_one_differ_as_data_too():
    cell = CellCost("b", "m", "1m", 1, 1, 1.0, 0.0, None, on_gpu=False, tuned_on_gpu=False)
    rows = costs_table([cell, replace(cell, tuning_hours=None)]).rows
    assert [row["tuning"] for row in rows] == [Cell("", 0.0), Cell("unknown", None)]


def test_what_was_not_measured_is_said(records):
    unmeasured = [r.model_copy(update={"budget": None, "operations": None}) for r in records]
    text = "\n".join(costs_table(costs_of(unmeasured)).notes)
    assert "the hours of 3 were not measured" in text
    assert "the operations of 3 can't be counted" in text


def test_the_command_prints_a_line_per_cell_and_the_sum(cli, folder):
    outcome = cli("leaderboard", "costs", folder)
    assert outcome.code == 0
    assert any(line.startswith("least-squares  ") for line in outcome.out.splitlines())
    assert "3 trained rows: " in outcome.out
    assert "zero" not in outcome.out
    assert cli("leaderboard", "costs", folder, folder).out == outcome.out
    rows = json.loads(
        cli("leaderboard", "costs", folder, "--format", "json", "--sort", "-steps").out
    )
    assert [row["steps"] for row in rows] == sorted((row["steps"] for row in rows), reverse=True)
    head, *lines = cli(
        "leaderboard", "costs", folder, "--format", "csv", "--columns", "model,hours"
    ).out.splitlines()
    assert (head, len(lines)) == ("model,hours", 3)
    assert "unknown column" in cli("leaderboard", "costs", folder, "--columns", "nonesuch").err


def test_a_folder_of_one_task_is_refused_with_the_folder_that_is_meant(cli, folder):
    for command in ("costs", "show"):
        outcome = cli("leaderboard", command, folder / "least-squares")
        assert outcome.code == 2
        assert f"holds the records of one task: give {folder}" in outcome.err


def test_digits_of_records_that_were_validated_by_another_metric_are_refused(
    cli, folder, monkeypatch
):
    monkeypatch.setattr("iclbench.leaderboards.costs.digits_of", lambda records, digits: [])
    outcome = cli("leaderboard", "costs", folder, "--digits", "1")
    assert outcome.code == 2
    assert "no record in these folders was validated in digits" in outcome.err


def test_digits_are_looked_up_in_the_validation_curve(cli, folder, records):
    table = digits_table(digits_of(records, [-5.0, 99.0]))
    (record,) = [r for r in records if r.spec.model == "lsa"]
    cost = cost_of_digits(record.validation_curve, -5.0)
    (row,) = (r for r in table.rows if r["model"].startswith("lsa") and value_of(r["digits"]) == -5)
    assert value_of(row["operations"]) == cost.operations
    assert [row["steps"].text for row in table.rows].count("not reached") == 3
    assert "not reached" in cli("leaderboard", "costs", folder, "--digits", "99").out
    for text in ("many", "nan", "1,inf", "1,"):
        refused = cli("leaderboard", "costs", folder, "--digits", text)
        assert (refused.code, "--digits takes numbers" in refused.err) == (2, True)


def test_trials_of_tunings_are_not_taken_for_rows(cli, folder):
    assert len(list(folder.glob("tuning/*/*.json"))) == 2
    outcome = cli("verify", folder)
    assert outcome.code == 0
    assert "4 of 4 records hold" in outcome.out
    assert "2 of 2 records hold" in cli("verify", folder / "tuning").out


def test_a_folder_without_trainings_is_one_line(cli, tmp_path):
    run(model="zero", **TINY, out=tmp_path)
    outcome = cli("leaderboard", "costs", tmp_path)
    assert outcome.code == 2
    assert "no records of trained models" in outcome.err


def test_a_training_on_a_gpu_costs_the_device_s_hours(records):
    record = next(record for record in records if record.budget)
    budget = record.budget.model_copy(update={"device_seconds": 7200.0, "core_seconds": 36.0})
    (cell,) = costs_of([record.model_copy(update={"budget": budget, "tuning": None})])
    assert (cell.hours, cell.on_gpu) == (2.0 * len(record.seeds), True)
