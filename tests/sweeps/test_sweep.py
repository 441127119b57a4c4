"""Sweeps: grids, grouping, only what is missing, and failures that stop nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iclbench import RecordStore, UsageError, sweep
from iclbench.sweeps.executors.local import Local
from iclbench.sweeps.files import expand, read_sweep_file

DEFAULTS = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "recipe_args": {"steps": 3},
    "seeds": 2,
    "eval_prompts": 32,
}


def die_or_answer(job):
    if job["die"]:
        os._exit(1)
    return "alive"


def test_every_list_is_an_axis():
    grid = {"model": ["a", "b"], "task": "t", "model_args": {"x": [1, 2], "y": 3}}
    cells = list(expand(grid, {}))
    assert len(cells) == 4
    assert cells[0] == {"model": "a", "task": "t", "model_args": {"x": 1, "y": 3}}


def test_a_list_of_lists_is_an_axis_of_lists():
    cells = list(expand({"model_args": {"betas": [[0.9, 0.99], [0.8, 0.9]]}}, {}))
    assert [c["model_args"]["betas"] for c in cells] == [[0.9, 0.99], [0.8, 0.9]]


def test_seeds_metrics_and_freeze_are_whole():
    (cell,) = expand({"seeds": [3, 4], "metrics": ["a", "b"], "freeze": ["x", "y"]}, {})
    assert cell == {"seeds": [3, 4], "metrics": ["a", "b"], "freeze": ["x", "y"]}
    assert list(expand({"seeds": "3,4"}, {})) == [{"seeds": (3, 4)}]


def test_a_grid_overrides_the_defaults_argument_by_argument():
    (cell,) = expand({"model_args": {"x": 2}}, {"model_args": {"x": 1, "y": 1}, "task": "t"})
    assert cell == {"task": "t", "model_args": {"x": 2, "y": 1}}


def test_learning_rates_and_seeds_train_as_one_program(tmp_path):
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 4e-3]}}
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert [r.training.replicas for r in result.records] == [6, 6, 6]
    assert len({r.id for r in result.records}) == 3


def test_programs_have_no_more_replicas_than_allowed(tmp_path):
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 4e-3]}}
    result = sweep({"replicas": 4, "defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert sorted(r.training.replicas for r in result.records) == [2, 4, 4]


def test_only_what_is_missing_is_run(tmp_path):
    grid = {"model": ["zero", "averaging"]}
    first = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    RecordStore(tmp_path).path(first.records[0].spec).unlink()
    again = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert again.already_done == 1
    assert again.records[1] == first.records[1]
    assert [r.metrics for r in again.records] == [r.metrics for r in first.records]


def test_one_failing_cell_stops_nothing(tmp_path):
    grids = [
        {"model": ["zero", "transformer"], "model_args": {"heads": [3]}},
        {"model": ["nonesuch", "averaging"]},
    ]
    result = sweep({"defaults": DEFAULTS, "grid": grids}, out=tmp_path)
    assert [r.spec.model for r in result.records] == ["averaging"]
    reasons = " ".join(f.reason for f in result.failures)
    assert len(result.failures) == 3
    assert "do not divide" in reasons
    assert "unknown model 'nonesuch'" in reasons


def test_a_cell_that_fails_while_it_runs_is_reported(tmp_path, provide):
    from iclbench_solvers.simple import Zero

    class Failing(Zero):
        name = "failing"

        def weights(self, examples, config):
            raise RuntimeError("no luck")

    provide("model", "failing", Failing)
    lines = []
    result = sweep(
        {"defaults": DEFAULTS, "grid": [{"model": ["failing", "averaging"]}]},
        out=tmp_path,
        report=lines.append,
    )
    assert [r.spec.model for r in result.records] == ["averaging"]
    assert [f.reason for f in result.failures] == ["RuntimeError: no luck"]
    assert "--model failing" in result.failures[0].command
    assert lines[-1].endswith("done")


def test_a_worker_that_dies_fails_its_own_cell_alone(tmp_path):
    jobs = [{"die": True}, {"die": False}, {"die": False}]
    found = dict(Local().map(die_or_answer, jobs, workers=2))
    assert "BrokenProcessPool" in type(found[0]).__name__
    assert (found[1], found[2]) == ("alive", "alive")


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time, os\n"
        "from iclbench.sweeps.executors.local import Local\n"
        "def job(folder):\n"
        "    open(f'{folder}/pid', 'w').write(str(os.getpid()))\n"
        "    time.sleep(300)\n"
        "if __name__ == '__main__':\n"
        f"    list(Local().map(job, [{str(tmp_path)!r}, {str(tmp_path)!r}], 2))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)])
    # Generous, since a busy machine takes its time to start processes.
    deadline = time.monotonic() + 120
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    worker = int((tmp_path / "pid").read_text())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(worker)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cell_that_fails_in_a_group_takes_no_other_with_it(tmp_path):
    """A learning rate's record can't be written; the other's stays, and is reported done."""
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3]}}
    content = {"defaults": DEFAULTS, "grid": [grid]}
    first, second = sweep(content, out=tmp_path / "a").records
    blocked = RecordStore(tmp_path / "b").path(second.spec)
    blocked.mkdir(parents=True)
    result = sweep(content, out=tmp_path / "b")
    assert len(result.failures) == 1
    assert "0.002" in result.failures[0].command
    assert [r.id for r in result.records] == [first.id]


def test_what_was_done_is_counted_beside_failures(tmp_path):
    grids = [{"model": ["nonesuch", "zero"]}]
    lines = []
    sweep({"defaults": DEFAULTS, "grid": grids}, out=tmp_path, report=lines.append)
    assert lines[0].startswith("can't be run: iclbench run --model nonesuch")
    assert lines[1] == "1 runs: 0 done before, 1 to do"
    with pytest.raises(UsageError, match="empty list"):
        sweep({"defaults": DEFAULTS, "grid": [{"model": []}]}, out=tmp_path)


def test_one_process_a_worker_gives_the_same_records(tmp_path):
    content = {"defaults": DEFAULTS, "grid": [{"model": ["baseconv", "zero"]}]}
    here = sweep(content, out=tmp_path / "a")
    there = sweep(content, out=tmp_path / "b", workers=2)
    assert [r.id for r in here.records] == [r.id for r in there.records]
    for a, b in zip(here.records, there.records, strict=True):
        assert a.metrics["squared_error"].mean == pytest.approx(
            b.metrics["squared_error"].mean, rel=1e-4
        )
    assert there.records[0].environment.threads == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"grid": []}, "grid"),
        ({"girds": [{}]}, "did you mean grid"),
        ({"grid": [{"model": "zero", "task": "t", "sedes": 3}]}, "did you mean seeds"),
        ({"grid": [{"model": "zero"}]}, "task: field required"),
    ],
)
def test_a_bad_file_is_refused(content, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        sweep(content, out=tmp_path)


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("grid = [")
    with pytest.raises(UsageError, match=r"sweep\.toml"):
        sweep(path)
    with pytest.raises(UsageError, match="unknown executor"):
        sweep({"grid": [{"model": "zero"}]}, executor="nonesuch")


def test_a_grid_starts_from_the_weights_that_another_left(tmp_path):
    """Listed after it, in whatever stage; the second sweep finds everything done."""
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
    assert Path(two.spec.init).name == one.weights.file
    assert two.spec.checkpoint_digest == one.weights.sha256
    assert three.spec.origin == "loaded"
    assert three.spec.checkpoint_digest == two.weights.sha256
    again = sweep(content, out=tmp_path)
    assert again.already_done == 4
    assert [r.id for r in again.records] == [r.id for r in result.records]


def test_a_damaged_record_of_a_named_run_stops_nothing_else(tmp_path):
    first = {"name": "first", "model": "transformer", "model_args": {"layers": 1, "width": 8}}
    content = {
        "defaults": {**DEFAULTS, "recipe": "smoke"},
        "grid": [first, {"model": "transformer", "weights": "@first"}, {"model": "zero"}],
    }
    found = sweep(content, out=tmp_path)
    path = RecordStore(tmp_path).path(found.records[0].spec)
    path.write_text(path.read_text().replace('"parameters"', '"parametres"'))
    again = sweep(content, out=tmp_path)
    assert [r.spec.model for r in again.records] == ["zero"]
    assert len(again.failures) == 2


def test_when_the_run_that_is_named_fails_what_follows_is_said_and_the_rest_goes_on(tmp_path):
    broken = {"name": "first", "model": "transformer", "model_args": {"heads": 7}}
    content = {
        "defaults": {**DEFAULTS, "recipe": "smoke"},
        "grid": [broken, {"model": "transformer", "init": "@first"}, {"model": "zero"}],
    }
    result = sweep(content, out=tmp_path)
    assert [f.reason for f in result.failures][1] == "the run 'first' left no weights"
    assert [r.spec.model for r in result.records] == ["zero"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([{"model": "transformer", "init": "@other"}], "no grid before this one"),
        ([{"name": "a", "model": "zero"}, {"name": "a", "model": "zero"}], "two grids"),
        ([{"name": "a", "model": ["zero", "averaging"]}], "names 2 runs"),
        ([{"name": ["a"], "model": "zero"}], "must be text"),
        ([{"name": "a", "model": "zero"}, {"model": "transformer", "init": ["@a"]}], "a grid each"),
        (
            [{"name": "a", "model": "zero"}, {"model": "transformer", "init": "@a", "sedes": 3}],
            "did you mean seeds",
        ),
    ],
)
def test_names_that_can_t_be_used_are_refused(grid, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        sweep({"defaults": DEFAULTS, "grid": grid}, out=tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_a_size_takes_the_place_of_what_the_file_says():
    grids = [{"model": "baseconv", "model_args": {"width": 8}}, {"model": "zero"}]
    size = {
        "defaults": {"recipe_args": {"steps": 2}, "seeds": 1},
        "grid": [{"model_args": {"layers": [1, 2]}}, {}],
    }
    file = read_sweep_file({"defaults": DEFAULTS, "grid": grids, "recipes": {"paper": size}})
    assert file.sized("quick") is file
    paper = file.sized("paper")
    assert paper.out == "results-paper"
    assert paper.defaults == {**DEFAULTS, "recipe_args": {"steps": 2}, "seeds": 1}
    assert paper.grid == [
        {"model": "baseconv", "model_args": {"layers": [1, 2]}},
        {"model": "zero"},
    ]


def test_a_size_runs_by_its_name(tmp_path):
    content = {
        "defaults": {**DEFAULTS, "seeds": 1},
        "grid": [{"model": "zero"}],
        "recipes": {"small": {"grid": [{"model": "averaging"}]}},
    }
    result = sweep(content, out=tmp_path, recipe="small")
    assert [r.spec.model for r in result.records] == ["averaging"]


def test_an_unknown_size_and_one_that_does_not_fit_are_refused(tmp_path):
    content = {"defaults": DEFAULTS, "grid": [{"model": "zero"}], "recipes": {"paper": {}}}
    with pytest.raises(UsageError, match="did you mean 'paper'"):
        sweep(content, out=tmp_path, recipe="papr")
    content["recipes"]["paper"] = {"grid": [{}, {}]}
    with pytest.raises(UsageError, match="2 grids, the file 1"):
        sweep(content, out=tmp_path)


def test_numbers_that_replicas_carry_train_as_one_program(tmp_path):
    """Noise, condition number and initial scale: each cell's result is what it is alone."""
    grid = {
        "model": "baseconv",
        "model_args": {"init_std": [0.02, 0.1]},
        "task_args": {"noise": [0.0, 0.3], "condition_number": [None, 4.0]},
    }
    said = []
    defaults = {**DEFAULTS, "dtype": "float64", "seeds": 1, "metrics": []}
    content = {"defaults": defaults, "grid": [_without_null(grid), _with_null(grid)]}
    result = sweep(content, out=tmp_path / "together", report=said.append)
    assert not result.failures
    assert len({r.id for r in result.records}) == 8
    assert {r.training.replicas for r in result.records} == {8}
    assert all(r.training.speedup > 0 for r in result.records)
    assert any("8 models" in line and "times as fast as one by one" in line for line in said)
    alone = sweep({**content, "replicas": 1}, out=tmp_path / "alone")
    for a, b in zip(result.records, alone.records, strict=True):
        assert (a.id, b.training.replicas) == (b.id, 1)
        assert a.training.curve[0] == pytest.approx(b.training.curve[0], rel=1e-9)
        assert a.metrics["squared_error"].mean == pytest.approx(
            b.metrics["squared_error"].mean, rel=1e-6
        )


def _without_null(grid):
    task_args = {**grid["task_args"], "condition_number": 4.0}
    return {**grid, "task_args": task_args}


def _with_null(grid):
    return {**grid, "task_args": {"noise": grid["task_args"]["noise"]}}


def test_what_changes_the_program_is_not_carried(tmp_path):
    grid = {"model": "baseconv", "model_args": {"width": [8, 16]}, "task_args": {"noise": [0, 0.5]}}
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert [r.training.replicas for r in result.records] == [4, 4, 4, 4]


def test_cells_are_run_in_halves_where_memory_is_short(tmp_path, monkeypatch):
    import torch

    import iclbench.sweeps.sweep as module

    sizes, run = [], module.run_plans

    def limited(plans, settings):
        sizes.append(len(plans))
        if len(plans) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(plans, settings)

    monkeypatch.setattr(module, "run_plans", limited)
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 3e-3]}}
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert sizes == [3, 2, 1, 1, 1]
    assert len(result.records) == 3
    assert not result.failures
