"""`iclbench tune`, `run --tuned` and `run --tune`."""

from __future__ import annotations

import json
import re
import shlex
from types import SimpleNamespace

import pytest
from safetensors.torch import save_file
from test_suites_command import TEXT

from iclbench import RunSpec
from iclbench.cli import tune
from iclbench.display.table import Output
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record
from iclbench.runs.tuned import read_tuning
from iclbench.sweeps.tuning import search
from iclbench.sweeps.tuning.planning import planned_search
from iclbench.sweeps.tuning.settings import SearchSettings

TASK = ("--task", "least-squares", "--task-args", "dim=2,examples=4", "--recipe", "smoke",
        "--seeds", "2", "--eval-prompts", "32")  # fmt: skip
SPACE = ("--trials", "4", "--space", 'model_args={"layers":[1,2]}')


def test_a_tuning_is_found_printed_and_used(cli, tmp_path):
    out = tmp_path / "out"
    tuned = cli("tune", "--model", "baseconv", *TASK, *SPACE, "--out", out)
    assert tuned.code == 0, tuned.err
    assert "baseconv on least-squares, 4 trials" in tuned.out
    (path,) = (out / "tunings").glob("*.json")
    assert f"tuning: {path}" in tuned.out
    document = read_tuning(path)
    again = cli("tune", "--model", "baseconv", *TASK, *SPACE, "--out", out).out
    nothing = "Nothing was run: all trials had records.\n"
    assert nothing in again
    assert again.replace(nothing, "") == tuned.out
    assert "* chosen: the " in tuned.out
    (marked,) = [line for line in tuned.out.splitlines() if " * " in line]
    assert f"{document.best.score:.4g} *" in marked
    run = cli("run", "--model", "baseconv", *TASK, "--tuned", path, "--out", out)
    assert run.code == 0, run.err
    assert f"tuned: init_std={document.best.model_args['init_std']}" in run.err
    (record,) = out.glob("least-squares/*.json")
    content = json.loads(record.read_text())
    assert content["tuning"]["document"]["chosen"] == document.chosen
    assert content["spec"]["model_args"]["layers"] == document.best.model_args["layers"]
    assert cli("verify", record).code == 0
    edited = json.loads(path.read_text())
    edited["search_seed"] = 3
    path.write_text(json.dumps(edited))
    refused = cli("run", "--model", "baseconv", *TASK, "--tuned", path, "--out", out)
    assert refused.code == 2
    assert "edited or renamed" in refused.err


def test_a_record_gives_the_weights_that_all_trials_start_from(cli, tmp_path):
    plan = resolve(RunSpec(model="baseconv", task="least-squares", recipe="smoke",
                           task_args={"dim": 2, "examples": 4}))  # fmt: skip
    weights = tmp_path / "weights.safetensors"
    save_file(initial_module(plan, 0).state_dict(), weights)
    shape = ("--model", "baseconv", *TASK, "--model-args", "layers=1,width=16")
    loaded = cli("run", *shape, "--weights", weights, "--out", tmp_path / "a")
    assert loaded.code == 0, loaded.err
    (record,) = (tmp_path / "a").glob("*/*.json")
    tuned = cli("tune", *shape, "--init", record, "--trials", "1", "--out", tmp_path / "b")
    assert tuned.code == 0, tuned.err
    (trial,) = (tmp_path / "b" / "tuning").glob("*/*.json")
    assert read_record(trial).spec.init.endswith(".safetensors")
    document = read_tuning(next((tmp_path / "b" / "tunings").iterdir()))
    assert document.start["init"] == read_record(record).weights_file.sha256
    assert (document.space.init_std, document.space.model_args) == (None, {})
    run = ("run", *shape, "--tuned", tmp_path / "b", "--out", tmp_path / "c")
    refused = cli(*run)
    assert refused.code == 2
    assert "the tuning of baseconv on least-squares is of init=" in refused.err
    assert "not random weights" in refused.err
    assert "freeze" not in refused.err
    assert cli(*run, "--init", record).code == 0
    (tuned,) = (tmp_path / "c").glob("*/*.json")
    assert cli("verify", tuned).code == 0


def test_a_forced_run_keeps_its_tuning(cli, tmp_path):
    first = cli("run", "--model", "baseconv", *TASK, "--tune", "--trials", "1", "--out", tmp_path)
    assert first.code == 0, first.err
    (path,) = tmp_path.glob("least-squares/*.json")
    before = read_record(path)
    again = cli(*shlex.split(before.command)[1:], "--out", tmp_path, "--force")
    assert again.code == 0, again.err
    assert read_record(path).tuning == before.tuning is not None
    assert cli("verify", path).code == 0


def test_a_search_that_fails_leaves_no_folder(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "run_job", lambda job: ["no luck"] * len(job["requests"]))
    out = tmp_path / "new" / "out"
    failed = cli("tune", "--model", "baseconv", *TASK, *SPACE, "--out", out)
    assert (failed.code, "no luck" in failed.err) == (1, True), failed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "cuda:99"), "does not exist"),
        (("--device", "cuda:1", "--workers", "2"), "several workers use one GPU each"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_once_before_any_trial(
    cli, tmp_path, options, message
):
    args = ("tune", "--model", "transformer", "--suite", "smoke", "--out", tmp_path / "out")
    refused = cli(*args, *options)
    assert (refused.code, message in refused.err) == (2, True), refused.err
    assert refused.err.count(message) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_a_search_would_run_is_said_and_nothing_is_written(cli, tmp_path):
    out = tmp_path / "out"
    args = ("tune", "--model", "baseconv", *TASK, *SPACE, "--out", out)
    planned = cli(*args, "--dry-run")
    assert planned.code == 0, planned.err
    assert "baseconv on least-squares, 4 trials: 4 to run" in planned.out
    assert not out.exists()
    budget = cli(*args, "--budget", "10m", "--dry-run")
    assert "4 to run, 4m of core time in all" in budget.out
    assert cli(*args).code == 0
    rows = json.loads(cli(*args, "--dry-run", "--format", "json").out)
    assert {row["does"] for row in rows} == {"record exists"}
    (path,) = (out / "tunings").glob("*.json")
    trials = read_tuning(path).trials
    assert [row["rate"] for row in rows] == [t.recipe_args["learning_rate"] for t in trials]
    odd = ("--model-args", "heads=4", "--trials", "4", "--space", 'model_args={"width":[6]}')
    refused = cli("tune", "--model", "transformer", *TASK, *odd, "--out", out, "--dry-run")
    assert "can't run: " in refused.out


def test_trials_of_a_suite_are_told_apart_by_their_boards(cli, tmp_path):
    args = ("--model", "transformer", "--suite", "smoke", "--trials", "2", "--dry-run")
    planned = cli("tune", *args, "--out", tmp_path / "out")
    assert planned.code == 0, planned.err
    for board in ("emoji", "fashion-mnist", "linear-system"):
        assert f"transformer on {board}, 2 trials: " in planned.out


def test_a_tuning_of_something_else_is_refused(cli, tmp_path):
    out = tmp_path / "out"
    cli("tune", "--model", "baseconv", *TASK, "--trials", "1", "--out", out)
    other = cli("run", "--model", "transformer", *TASK, "--tuned", out / "tunings", "--out", out)
    assert other.code == 2
    assert (
        "no tuning is of transformer on least-squares; tunings are of baseconv on least-squares"
        in other.err
    )


def test_a_suite_is_tuned_and_run_by_one_command(cli, tmp_path):
    suite, out = tmp_path / "tiny.toml", tmp_path / "out"
    suite.write_text(TEXT)
    args = ("run", "--model", "baseconv", "--suite", suite, "--tune", "--trials", "2",
            "--out", out)  # fmt: skip
    first = cli(*args)
    assert first.code == 0, first.err
    assert "tuning: 2 trials on the board, at a tenth of the steps" in first.out
    assert re.search(r"^baseconv .* trained +open +tuned ", first.out, re.M)
    assert len(list((out / "tunings").glob("*.json"))) == 1
    again = cli(*args)
    assert "has a record of" in again.err
    tuned = cli("tune", "--model", "baseconv", "--suite", suite, "--trials", "2", "--out", out)
    assert tuned.code == 0
    assert "systems: baseconv is unsupported: it is built for prompts of one size" in tuned.err
    assert len(list((out / "tunings").glob("*.json"))) == 1


def test_what_a_suite_gives_is_not_searched(cli, tmp_path):
    suite = tmp_path / "tiny.toml"
    suite.write_text(
        TEXT.replace("[[board]]", "recipe_args = { learning_rate = 0.5 }\n\n[[board]]", 1)
    )
    args = ("tune", "--model", "baseconv", "--suite", suite, "--trials", "2", "--out", tmp_path)
    refused = cli(*args, "--space", "learning_rate=[1e-4,1e-3]", "--dry-run")
    assert refused.code == 2
    assert "learning_rate can't be both given and searched" in refused.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "give either --task or --suite"),
        (("--task", "least-squares", "--suite", "core"), "give either --task or --suite"),
        (("--task", "least-squares", "--space", "rates=[1]"), "unknown field 'rates'"),
        (("--task", "least-squares", "--space", "rates"), "not of the form key=value"),
        (
            ("--task", "ridge", "--recipe-args", "schedule=step", "--space", "schedules=[step]"),
            "schedule can't be both given and searched",
        ),
    ],
)
def test_bad_usage_is_one_line(cli, tmp_path, args, message):
    outcome = cli("tune", "--model", "baseconv", *args, "--out", tmp_path)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_search_that_fails_decides_the_exit_code_though_a_later_one_succeeds(
    tmp_path, monkeypatch
):
    outcomes = iter([(1, None), (0, None)])
    monkeypatch.setattr(tune, "_tune", lambda *_: next(outcomes))
    plan = SimpleNamespace(spec=SimpleNamespace(model="a", task="b"))
    plans, settings = {"a on b": plan, "a on c": plan}, Settings(tmp_path)
    assert tune._tune_all(plans, settings, None, Output()) == 1


def test_a_solver_has_nothing_to_tune(cli, tmp_path):
    outcome = cli("tune", "--model", "zero", "--task", "least-squares", "--out", tmp_path)
    assert outcome.code == 2
    assert "nothing is trained, so there is nothing to tune" in outcome.err


@pytest.mark.parametrize(
    ("model", "reason"),
    [("averaging", "nothing is trained on its boards"), ("cholesky", "it supports none of")],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--format", "json")])
def test_a_suite_on_which_nothing_is_tuned_is_refused(cli, tmp_path, model, reason, options):
    suite = tmp_path / "tiny.toml"
    suite.write_text(TEXT.partition('[[board]]\nname = "systems"')[0])
    outcome = cli("tune", "--model", model, "--suite", suite, "--out", tmp_path / "out", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{model} on the suite {suite}: {reason}" in outcome.err
    assert "so there is nothing to tune" in outcome.err


def test_trials_and_pages_of_entries_are_tables_for_programs_too(cli, tmp_path):
    args = (*TASK, "--trials", "2", "--out", tmp_path, "--format", "json", "--sort", "-rate")
    outcome = cli("tune", "--model", "lsa", *args)
    rows = json.loads(outcome.out)
    assert [row["model"] for row in rows] == ["lsa", "lsa"]
    assert rows[0]["rate"] >= rows[1]["rate"]
    page = json.loads(cli("describe", "model", "transformer", "--format", "json").out)
    assert {"layers", "width"} <= {row["argument"] for row in page}
    assert "has no table" in cli("describe", "model", "zero", "--format", "csv").err
    assert "unknown column" in cli("describe", "transformer", "--columns", "nonesuch").err


def test_trials_are_neither_shifted_nor_graded_nor_shown_as_the_run(cli, tmp_path):
    """Only a task that ranks by a grade grades its trials."""
    args = ("--model", "baseconv", *TASK, "--tune", "--trials", "1", "--shift", "noisy")
    outcome = cli("run", *args, "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    (trial,) = (read_record(path) for path in (tmp_path / "tuning").glob("*/*.json"))
    (record,) = (read_record(path) for path in tmp_path.glob("least-squares/*.json"))
    assert (list(trial.evaluations), list(record.evaluations)) == (["main"], ["main", "noisy"])
    assert outcome.err.count("baseconv on least-squares: mean digits of squared_error") == 1

    graded = resolve(RunSpec(model="transformer", task="stories", recipe="smoke",
                             grader="text-statistics"))  # fmt: skip
    (planned,) = planned_search(graded, Settings(tmp_path), SearchSettings(trials=1)).trials
    assert planned.plan is not None
    assert (graded.spec.grader, planned.plan.spec.grader) == ("text-statistics", None)
