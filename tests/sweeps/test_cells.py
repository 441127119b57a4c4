"""Cells: grids that take the weights of another grid's run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iclbench import RecordStore, run, sweep
from iclbench.runs.retraining import retrain
from iclbench.sweeps.cells import Cells, by_reason
from iclbench.sweeps.files import read_sweep_file
from iclbench.sweeps.sweep import plan_sweep

DEFAULTS = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "recipe_args": {"steps": 3},
    "seeds": 2,
    "eval_prompts": 32,
}


def test_a_grid_starts_from_the_weights_that_another_left(tmp_path):
    """Records keep the order of the grids, and a second sweep skips them all."""
    first = {"name": "first", "model": "transformer", "model_args": {"layers": 1, "width": 8}}
    tuned = {"name": "tuned", "model": "transformer", "init": "@first",
             "recipe_args": {"steps": 3}}  # fmt: skip
    asked = {"model": "transformer", "weights": "@tuned", "task_args": {"noise": 0.5}}
    grid = [first, tuned, {"model": "zero"}, asked]
    content = {"defaults": {**DEFAULTS, "recipe": "smoke"}, "grid": grid}
    result = sweep(content, out=tmp_path)
    assert not result.failures
    one, two, other, three = result.records
    assert other.spec.model == "zero"
    # No folder of this machine is in a record, nor in its command.
    assert two.spec.init == Path(one.weights_file.name).name
    assert str(tmp_path) not in two.command + three.command
    assert two.spec.checkpoint_digest == one.weights_file.sha256
    assert three.spec.origin == "loaded"
    assert three.spec.checkpoint_digest == two.weights_file.sha256
    again = sweep(content, out=tmp_path)
    assert again.already_done == 4
    assert [r.id for r in again.records] == [r.id for r in result.records]
    outcome = retrain(RecordStore(tmp_path).path_of(two))
    assert all(check.holds for check in outcome.checks)


def test_weights_of_another_run_are_found_from_any_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = {"name": "first", "model": "transformer", "model_args": {"layers": 1, "width": 8}}
    content = {"defaults": DEFAULTS, "grid": [first, {"model": "transformer", "init": "@first"}]}
    sweep({**content, "grid": [first]}, out="relative")
    cells, _ = plan_sweep(content, out="relative")
    requests = [json.loads(cell.request) for cell in cells.in_order()]
    assert Path(requests[1]["init"]).is_relative_to(tmp_path / "relative")


def test_a_record_that_is_damaged_since_is_a_failure(tmp_path):
    content = read_sweep_file({"defaults": DEFAULTS, "grid": [{"model": ["zero", "averaging"]}]})
    first, _ = sweep(content, out=tmp_path).records
    cells = Cells(content, RecordStore(tmp_path))
    cells.resolve(content.grid)
    RecordStore(tmp_path).path(first.spec).write_text("{")
    records, damaged = cells.records()
    assert [record.spec.model for record in records] == ["averaging"]
    assert [cell.model for cell, _ in damaged] == ["zero"]
    assert cells.failures == []
    assert [failure.damaged for failure in cells.fail_damaged(damaged)] == [True]
    assert cells.missing(cells.in_order()) == ([], damaged)


@pytest.mark.parametrize("shift", [[], ["all"]])
def test_a_plan_has_no_program_for_a_damaged_record_and_names_it(tmp_path, cli, shift):
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    grid = f'task = "least-squares"\nmodel = ["zero", "averaging"]\nshift = {json.dumps(shift)}'
    file.write_text(f"[defaults]\neval_prompts = 8\n[[grid]]\n{grid}\n")
    first, _ = sweep(file, out=out).records
    RecordStore(out).path(first.spec).write_text("{")
    cells, programs = plan_sweep(file, out=out)
    assert programs == []
    assert [failure.damaged for failure in cells.failures] == [True]
    planned = cli("sweep", file, "--out", out, "--dry-run")
    assert planned.code == 1
    assert planned.out.startswith("2 runs: 1 have a record, 0 to run")
    assert "can't be run: " in planned.out


def test_a_damaged_record_of_a_named_run_stops_nothing_else(tmp_path):
    first = {"name": "first", "model": "transformer", "model_args": {"layers": 1, "width": 8}}
    content = {
        "defaults": {**DEFAULTS, "recipe": "smoke"},
        "grid": [first, {"model": "transformer", "weights": "@first"}, {"model": "zero"}],
    }
    before = sweep(content, out=tmp_path)
    path = RecordStore(tmp_path).path(before.records[0].spec)
    path.write_text(path.read_text().replace('"parameters"', '"parametres"'))
    again = sweep(content, out=tmp_path)
    assert [r.spec.model for r in again.records] == ["zero"]
    assert len(again.failures) == 2


def test_if_a_named_run_fails_so_do_the_grids_that_need_it_and_no_others(tmp_path):
    broken = {"name": "first", "model": "transformer", "model_args": {"heads": 7}}
    content = {
        "defaults": {**DEFAULTS, "recipe": "smoke"},
        "grid": [broken, {"model": "transformer", "init": "@first"}, {"model": "zero"}],
    }
    result = sweep(content, out=tmp_path)
    assert [f.reason for f in result.failures][1] == "the run 'first' left no weights"
    assert [r.spec.model for r in result.records] == ["zero"]
    assert result.missing == 2


def test_a_grid_without_its_weights_counts_as_all_its_runs(tmp_path):
    broken = {"name": "first", "model": "transformer", "model_args": {"heads": 7}}
    later = {"model": "transformer", "init": "@first", "eval_seed": [1, 2, 3]}
    content = {"defaults": {**DEFAULTS, "recipe": "smoke"}, "grid": [broken, later]}
    result = sweep(content, out=tmp_path)
    assert [len(result.failures), result.missing] == [2, 4]
    assert by_reason(result.failures)[1].endswith("left no weights (2 more like this)")


def test_before_a_named_run_has_run_its_grids_wait(tmp_path):
    first = {"name": "first", "model": "transformer", "model_args": {"layers": 1, "width": 8}}
    content = {"defaults": DEFAULTS, "grid": [first, {"model": "transformer", "init": "@first"}]}
    cells, programs = plan_sweep(content, out=tmp_path)
    assert len(programs) == 1
    assert [f.reason for f in cells.waiting] == ["it waits for the weights of the run 'first'"]


def test_a_grid_waits_for_one_that_waits_itself(tmp_path):
    model = {"model": "transformer", "model_args": {"layers": 1, "width": 8}}
    grids = [
        {"name": "first", **model},
        {"name": "second", **model, "init": "@first"},
        {**model, "init": "@second"},
    ]
    content = {"defaults": {**DEFAULTS, "recipe": "smoke"}, "grid": grids}
    cells, _ = plan_sweep(content, out=tmp_path)
    assert [f.reason for f in cells.waiting] == [
        "it waits for the weights of the run 'first'",
        "it waits for the run 'second', which waits too",
    ]
    assert cells.failures == []
    assert len(sweep(content, out=tmp_path).records) == 3
    cells, _ = plan_sweep(content, out=tmp_path)
    assert (cells.waiting, cells.failures) == ([], [])


def test_a_failure_is_forgotten_where_another_process_has_left_the_record(tmp_path):
    grid = [{"model": "zero"}, {"model": "averaging"}]
    file = read_sweep_file({"defaults": {"task": "least-squares", "eval_prompts": 8}, "grid": grid})
    cells = Cells(file, RecordStore(tmp_path))
    for cell in cells.resolve(file.grid):
        cells.fail(cell, "another process is running it")
    run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path)
    cells.forgive_recorded()
    assert [failure.command.split()[3] for failure in cells.failures] == ["averaging"]
    records, _ = cells.records()
    assert [record.spec.model for record in records] == ["zero"]
