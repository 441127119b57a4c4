"""The status of a sweep, from its records and the queue."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

import pytest
from fake_queue import FakeQueue
from test_programs import CONTENT, DEFAULTS

from iclbench import QueuedJob, RunError, RunSpec, submit_sweep, sweep, sweep_status
from iclbench.api.errors import Interrupted
from iclbench.cli.sweep_status import _print_begun
from iclbench.runs.plan import resolve
from iclbench.runs.training import checkpoint_of, training_code
from iclbench.sweeps.files import read_sweep_file
from iclbench.sweeps.status import CellStatus, _of_job
from iclbench.sweeps.sweep import plan_sweep, recorded
from iclbench.training.checkpoints import Checkpoint


@pytest.fixture
def queue(tmp_path, provide, monkeypatch):
    """An installed executor whose jobs wait, in the folder where a sweep puts it."""
    monkeypatch.setattr(FakeQueue, "held", True)
    provide("executor", "fake-queue", FakeQueue)
    return FakeQueue(folder=tmp_path / "jobs" / "fake-queue")


def states(content, out):
    status = sweep_status(content, out=out)
    return [(one.state, one.reason, one.log) for one in status.cells]


def test_cells_are_done_running_waiting_failed_or_not_begun(tmp_path, queue):
    assert states(CONTENT, tmp_path) == [("not begun", "", "")] * 4
    submit_sweep(CONTENT, executor=queue, out=tmp_path)
    assert states(CONTENT, tmp_path)[0] == ("waiting", "Priority", "0.log")
    queue.run_next()
    queue.change(1, state="running", reason="")
    queue.change(2, state="failed", reason="its node burnt")
    assert states(CONTENT, tmp_path) == [
        ("done", "", ""),
        ("done", "", ""),
        ("running", "", "1.log"),
        ("failed", "its node burnt", "2.log"),
    ]


def test_a_cell_whose_record_is_damaged_has_failed(tmp_path):
    content = {"defaults": DEFAULTS, "grid": [{"model": "zero"}]}
    sweep(content, out=tmp_path)
    (path,) = (tmp_path / "least-squares").glob("*.json")
    path.write_text("{")
    ((state, reason, _),) = states(content, tmp_path)
    assert state == "failed"
    assert "it is truncated or not a record" in reason


def test_a_cell_that_failed_within_its_program_has_its_own_reason(tmp_path, queue):
    submit_sweep(CONTENT, executor=queue, out=tmp_path)
    queue.change(0, state="done", result=[None, "no room"], reason="")
    found = states(CONTENT, tmp_path)
    # The first says it is done, but its record is gone.
    assert found[:2] == [("not begun", "", ""), ("failed", "no room", "0.log")]


def test_grids_that_take_weights_of_unfinished_runs_are_counted(tmp_path):
    grid = [{"name": "first", "model": "baseconv"}, {"model": "baseconv", "init": "@first"}]
    status = sweep_status({"defaults": DEFAULTS, "grid": grid}, out=tmp_path)
    assert ([one.state for one in status.cells], status.later) == (["not begun"], 1)


def test_grids_wait_for_the_weights_of_a_stage_that_is_half_done(tmp_path):
    zero = {"model": "zero"}
    grid = [{"name": "first", "model": "baseconv"}, zero, {"model": "baseconv", "init": "@first"}]
    sweep({"defaults": DEFAULTS, "grid": [zero]}, out=tmp_path)
    status = sweep_status({"defaults": DEFAULTS, "grid": grid}, out=tmp_path)
    assert (status.count("done"), status.later, status.unusable) == (1, 1, [])


def test_a_later_grid_is_shown_though_an_unrelated_run_is_missing(tmp_path):
    zero = {"model": "zero"}
    grid = [{"name": "first", "model": "baseconv"}, zero, {"model": "baseconv", "init": "@first"}]
    sweep({"defaults": DEFAULTS, "grid": grid}, out=tmp_path)
    (path,) = (tmp_path / "least-squares").glob("zero-*.json")
    path.unlink()
    status = sweep_status({"defaults": DEFAULTS, "grid": grid}, out=tmp_path)
    assert sorted(one.state for one in status.cells) == ["done", "done", "not begun"]
    assert status.later == 0


def test_a_grid_without_its_weights_stands_for_all_of_its_runs(tmp_path):
    content = {"defaults": DEFAULTS, "grid": [
        {"name": "first", "model": "baseconv"},
        {"model": "baseconv", "init": "@first", "task_args": {"examples": [4, 5, 6]}},
    ]}  # fmt: skip
    result = recorded(read_sweep_file(content), tmp_path)
    assert sorted(failure.runs for failure in result.failures) == [1, 3]


def test_a_program_that_has_left_a_checkpoint_is_begun(tmp_path, capsys):
    grid = [{"model": "zero"}, {"model": "baseconv", "recipe": "smoke", "seeds": [0, 1]}]
    content = {"defaults": DEFAULTS, "grid": grid}
    assert [state for state, _, _ in states(content, tmp_path)] == ["not begun"] * 2
    cells, programs = plan_sweep(content, out=tmp_path)
    (trained,) = [group for group in programs if group[0].model == "baseconv"]
    path = checkpoint_of([cell.id for cell in trained], trained[0].program, tmp_path)
    code = training_code([resolve(RunSpec.model_validate_json(cell.request)) for cell in trained])
    Checkpoint({}, {"code": code}).save(path)
    (_, first, _), (begun, reason, _) = states(content, tmp_path)
    assert (first, begun) == ("", "begun")
    assert reason.startswith("its checkpoint is of 20")
    Checkpoint({}, {"code": {**code, "torch": "1.0"}}).save(path)
    _, (begun, reason, _) = states(content, tmp_path)
    assert begun == "begun"
    assert reason.startswith(f"checkpoint {path} was made by other code of torch; delete it")
    _print_begun(programs, cells)
    assert f"can't be continued: {reason}" in capsys.readouterr().out
    Checkpoint({}, {"kept": {"code": code}}).save(path)
    assert states(content, tmp_path)[1][1].startswith("its checkpoint is of 20")


def test_a_checkpoint_that_is_gone_a_moment_later_is_none(tmp_path, monkeypatch):
    """Its program ends between two looks at it."""
    monkeypatch.setattr(Path, "exists", lambda path, **options: path.suffix == ".safetensors")
    content = {"defaults": DEFAULTS, "grid": [{"model": "baseconv"}]}
    assert states(content, tmp_path) == [("not begun", "", "")]


def test_queues_that_cannot_be_asked_hide_no_record(tmp_path, provide, cli):
    class Down(FakeQueue):
        name = "down"

        def queue(self):
            raise RunError("unable to contact the controller")

    provide("executor", "down", Down)
    provide("executor", "fake-queue", FakeQueue)
    content = {"defaults": DEFAULTS, "grid": [{"model": ["zero", "averaging"]}]}
    sweep({**content, "grid": [{"model": "zero"}]}, out=tmp_path)
    for name in ("down", "fake-queue"):
        (tmp_path / "jobs" / name).mkdir(parents=True)
    FakeQueue(folder=tmp_path / "jobs" / "fake-queue").submit(len, [{"ids": []}], 1)
    status = sweep_status(content, out=tmp_path)
    assert [one.state for one in status.cells] == ["done", "not begun"]
    (line,) = status.unanswered
    assert line == (
        f"the queue of {tmp_path / 'jobs' / 'down'} can't be asked: unable to contact the "
        "controller; its waiting and running programs are not recognized"
    )
    file = tmp_path / "sweep.toml"
    file.write_text('[[grid]]\nmodel = "zero"\ntask = "least-squares"\n')
    asked = cli("sweep", file, "--out", tmp_path, "--status", "--format", "csv")
    assert asked.code == 0
    assert asked.out.startswith("state,")
    assert line in asked.err


def test_a_printed_command_writes_where_the_sweep_does(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "sweep.toml"
    file.write_text(
        '[[grid]]\nmodel = ["zero", "nonesuch"]\ntask = "least-squares"\neval_prompts = 8\n'
    )
    for question in ("--status", "--dry-run"):
        told = cli("sweep", file, "--out", "an out", question)
        commands = [line for line in told.out.splitlines() if "iclbench run" in line]
        assert len(commands) == 2
        assert all(" --out 'an out'" in line for line in commands)
        assert " --out " not in cli("sweep", file, question).out
    command = next(line for line in commands if "zero" in line).partition("iclbench ")[2]
    assert cli(*shlex.split(command)).code == 0
    again = cli("sweep", file, "--out", "an out", "--status")
    assert again.out.startswith("1 run: 1 done\n")


def test_the_command_says_what_failed_and_where_its_log_is(tmp_path, queue, cli):
    file = tmp_path / "sweep.toml"
    file.write_text(
        """
        [defaults]
        task = "least-squares"
        [[grid]]
        model = ["zero", "averaging", "nonesuch"]
        """
    )
    words = ("sweep", file, "--out", tmp_path, "--executor", "fake-queue", "--detach")
    submitted = cli(*words, "--executor-args", "partition=big")
    assert submitted.out.endswith("2 programs submitted, 0 in the queue already\n")
    assert submitted.code == 1  # there is no model nonesuch
    queue.change(0, state="failed", reason="its node\nburnt")
    asked = cli("sweep", file, "--out", tmp_path, "--status")
    assert asked.code == 1
    command = f"iclbench run --model {{}} --task least-squares --out {tmp_path}"
    lines = asked.out.splitlines()
    assert lines[0] == "2 runs: 1 waiting, 1 failed"
    assert lines[1:4] == [f"waiting: {command.format('averaging')}", "  Priority", "  log: 1.log"]
    assert lines[4:7] == [f"failed: {command.format('zero')}", "  its node burnt", "  log: 0.log"]
    assert lines[7].startswith("can't be run: iclbench run --model nonesuch")
    assert cli(*words, "--executor-args", "partitoin=x").code == 2
    assert cli("sweep", file, "--out", tmp_path, "--detach").code == 2


def test_what_a_queue_does_not_take_is_said_at_once(tmp_path, queue, cli, monkeypatch):
    file, submit = tmp_path / "sweep.toml", FakeQueue.submit
    file.write_text('[defaults]\ntask = "least-squares"\n[[grid]]\nmodel = ["zero", "averaging"]\n')

    def partly(self, *args):
        ids = submit(self, *args)
        self.change(0, state="failed", reason="its node burnt")
        self.change(1, state="failed", reason="one job is the limit; try again", refused=True)
        return ids

    monkeypatch.setattr(FakeQueue, "submit", partly)
    words = ("sweep", file, "--out", tmp_path, "--executor", "fake-queue", "--detach")
    outcome = cli(*words)
    assert outcome.code == 1
    assert outcome.out.endswith("1 program submitted, 0 in the queue already\n")
    refusal = "iclbench: error: 1 program not in the queue: one job is the limit; try again\n"
    assert outcome.err.endswith(refusal)
    monkeypatch.setattr(FakeQueue, "submit", submit)
    assert cli(*words).out.endswith("2 programs submitted, 0 in the queue already\n")


def test_a_dry_run_names_the_programs_and_runs_nothing(tmp_path, cli, monkeypatch):
    file = tmp_path / "sweep.toml"
    file.write_text(
        """
        replicas = 4
        [defaults]
        task = "least-squares"
        recipe = "smoke"
        seeds = 2
        [[grid]]
        model = "baseconv"
        recipe_args = { learning_rate = [1e-3, 2e-3, 3e-3] }
        """
    )
    planned = cli("sweep", file, "--out", tmp_path / "out", "--dry-run")
    assert planned.out.splitlines()[0] == (
        "3 runs: 0 have a record, 3 to run as 2 programs of 6 models"
    )
    line = planned.out.splitlines()[1]
    assert line.startswith("2 runs together, such as: iclbench run --model baseconv")
    assert line.endswith(f" --out {tmp_path / 'out'}")
    assert not (tmp_path / "out").exists()

    def cut(*args):
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr("iclbench.runs.run.evaluate_and_record", cut)
    assert cli("sweep", file, "--out", tmp_path / "out").code == 128 + signal.SIGTERM
    planned = cli("sweep", file, "--out", tmp_path / "out", "--dry-run")
    assert planned.out.splitlines()[:2] == [
        "3 runs: 0 have a record, 3 to run as 2 programs of 6 models",
        "1 program resumes from its checkpoint",
    ]


def test_a_dry_run_of_grids_that_wait_is_no_error(tmp_path, cli):
    file = tmp_path / "sweep.toml"
    file.write_text(
        """
        [defaults]
        task = "least-squares"
        recipe = "smoke"
        [[grid]]
        name = "first"
        model = "lsa"
        [[grid]]
        model = "lsa"
        init = "@first"
        """
    )
    for option in ("--dry-run", "--status"):
        planned = cli("sweep", file, "--out", tmp_path / "out", option)
        assert planned.code == 0
        assert "1 grid needs weights of unfinished runs" in planned.out


def test_the_status_and_the_plan_are_not_asked_for_at_once(cli, tmp_path):
    asked = cli("sweep", tmp_path / "sweep.toml", "--status", "--dry-run")
    assert asked.code == 2
    assert asked.err == ("iclbench: error: give either --status or --dry-run, not both\n")


@pytest.mark.parametrize("question", ["--dry-run", "--status"])
def test_a_question_submits_nothing(cli, tmp_path, question):
    asked = cli("sweep", tmp_path / "sweep.toml", question, "--detach")
    assert (asked.code, asked.err) == (
        2, f"iclbench: error: {question} submits nothing: leave out --detach\n"
    )  # fmt: skip


def test_a_cell_of_a_cancelled_job_is_not_begun():
    job = QueuedJob("0", {"ids": ["a"]}, "cancelled", "by somebody")
    assert _of_job("cell", job, 0) == CellStatus("cell", "not begun")
