"""`iclbench run`: what it prints and writes."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from tiny import TASK, TINY

from iclbench import hookimpl
from iclbench.plugins import host
from iclbench.training.checkpoints import Checkpoint
from iclbench_solvers.simple import Averaging, Zero


@pytest.fixture(autouse=True)
def _short_trials(monkeypatch):
    """Measure rates on a single chunk."""
    monkeypatch.setattr("iclbench.display.estimate.TRIAL_SECONDS", 0.0)


def test_the_main_job_prints_a_table_and_leaves_records(cli, tmp_path):
    models = "least-squares-qr,gradient-descent,transformer,baseconv"
    args = ("run", "--model", models, "--task", "least-squares", *TINY, "--out", tmp_path)
    first = cli(*args)
    assert first.code == 0
    assert " gradient-descent  ▲" in first.out
    assert "training 2 seeds for 20 steps" in first.err
    assert len(list(tmp_path.glob("least-squares/*.json"))) == 4
    shown = cli("leaderboard", "show", "--out", tmp_path)
    assert shown.code == 0
    assert shown.out.strip() == first.out.strip()
    again = cli(*args)
    assert again.out == first.out
    assert "training" not in again.err


def test_several_tasks_have_a_table_each(cli, tmp_path):
    tasks = "least-squares,least-squares-prefixes"
    outcome = cli("run", "--model", "zero,ridge", "--task", tasks, *TINY, "--out", tmp_path)
    assert outcome.code == 0
    assert outcome.out.count("ranked by its mean digits") == 2
    only = cli("leaderboard", "show", "--out", tmp_path, "--task", "least-squares", "--commands")
    assert only.out.count("ranked by its mean digits") == 1
    assert "iclbench run --model zero" in only.out


def test_arguments_can_be_for_one_model(cli, tmp_path):
    args = ("run", "--model", "zero,baseconv,transformer", *TASK, *TINY, "--out", tmp_path,
            "--dry-run", "--format", "json")  # fmt: skip
    outcome = cli(*args, "--model-args", "baseconv.width=8,transformer.width=12")
    assert outcome.code == 0
    widths = {row["model"]: row["spec"]["model_args"].get("width")
              for row in json.loads(outcome.out)}  # fmt: skip
    assert widths == {"zero": None, "baseconv": 8, "transformer": 12}
    other = cli(*args, "--model-args", "nonesuch.width=8")
    assert other.code == 2
    assert "'nonesuch', which is not run" in other.err
    none = cli(*args, "--model-args", "width=8")
    assert "unknown field 'width'; there are none" in none.err


def test_a_model_that_is_named_twice_is_run_once(cli, tmp_path):
    outcome = cli("run", "--model", "zero,zero", *TASK, *TINY, "--out", tmp_path)
    assert outcome.out.count(" zero ") == 1


def test_a_late_refusal_does_not_lose_the_table_of_the_others(cli, tmp_path):
    """With one damaged record, the other models are run and shown; the exit code is 2."""
    args = ("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path)
    cli(*args)
    (path,) = tmp_path.rglob("zero-*.json")
    path.write_text("{")
    outcome = cli(*args)
    assert outcome.code == 2
    assert " averaging " in outcome.out


def test_an_unexpected_error_is_one_line(cli, tmp_path, provide):
    class Unsupporting(Zero):
        name = "unsupporting"

        def supports(self, signature, config):
            raise RuntimeError("no luck")

    provide("model", "unsupporting", Unsupporting)
    outcome = cli("run", "--model", "unsupporting", *TASK, "--out", tmp_path)
    assert outcome.code == 1
    assert outcome.err.endswith("RuntimeError: no luck (ICLBENCH_DEBUG=1 shows the traceback)\n")


def test_a_reproduce_command_gives_the_same_record(cli, tmp_path):
    cli("run", "--model", "baseconv", "--task", "least-squares", *TINY, "--out", tmp_path / "a",
        "--model-args", "width=8,mlp=false")  # fmt: skip
    (path,) = tmp_path.glob("a/*/*.json")
    record = json.loads(path.read_text())
    words = shlex.split(record["command"])[1:]
    assert cli(*words, "--out", tmp_path / "b").code == 0
    (again,) = tmp_path.glob("b/*/*.json")
    assert again.name == path.name
    metrics = [r["evaluations"]["main"]["metrics"] for r in (json.loads(again.read_text()), record)]
    assert metrics[0] == metrics[1]


def lines_of(text):
    """The lines of a table by the name of their model, their words."""
    return {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}


def test_a_dry_run_is_a_page_with_a_measured_time_and_runs_nothing(cli, tmp_path):
    args = ("run", "--model", "zero,transformer", "--task", "least-squares", *TINY,
            "--out", tmp_path)  # fmt: skip
    outcome = cli(*args, "--dry-run")
    assert outcome.code == 0
    page = lines_of(outcome.out)
    assert page["zero"][1:3] == ["least-squares", "solve"]
    assert page["transformer"][1:5] == ["least-squares", "train", "2", "20"]
    assert "steps/s" in outcome.out
    assert re.search(r"training: (about|under) ", outcome.out)
    assert "Nothing has been run." in outcome.out
    assert len(outcome.out.splitlines()) < 15
    assert not list(tmp_path.iterdir())
    cli(*args)
    assert cli(*args, "--dry-run").out.count("record exists") == 2


def test_the_time_of_a_dry_run_follows_from_the_rate(cli, tmp_path):
    args = ("run", "--model", "transformer", *TASK, *TINY, "--out", tmp_path, "--dry-run",
            "--format", "json")  # fmt: skip
    (few,) = json.loads(cli(*args).out)
    (many,) = json.loads(cli(*args, "--recipe-args", "steps=40000").out)
    assert (few["steps"], many["steps"]) == (20, 40000)
    for row in (few, many):
        assert row["time"] == pytest.approx(row["steps"] / row["steps/s"])


def test_a_dry_run_says_what_a_budget_costs(cli, tmp_path):
    args = ("run", "--model", "transformer", "--task", "least-squares", "--out", tmp_path)
    outcome = cli(*args, "--budget", "10m", "--seeds", "3", "--dry-run")
    assert outcome.code == 0
    assert "30m of core time" in outcome.out
    outcome = cli(*args, "--budget", "90s", "--seeds", "1", "--dry-run")
    assert "90s of core time" in outcome.out


def test_a_dry_run_says_what_a_tuning_costs_and_where_a_training_goes_on(cli, tmp_path):
    args = ("run", "--model", "transformer,zero", *TASK, *TINY, "--out", tmp_path, "--dry-run")
    assert "tune" not in cli(*args).out
    assert "tuning first: 12 trials on the board, at a tenth of" in cli(*args, "--tune").out
    budget = ("--model", "transformer", "--task", "least-squares,ridge", "--budget", "10s")
    text = cli("run", *budget, "--tune", "--trials", "3", "--dry-run", "--out", tmp_path).out
    assert "3 trials for each of 2 trainings, at most 6s of core time" in text
    (training,) = [row for row in json.loads(cli(*args, "--format", "json").out) if row["seeds"]]
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / f"{training['id']}.safetensors").touch()
    assert "train from its checkpoint" in cli(*args).out
    assert "train from its checkpoint" in cli(*args, "--force").out
    assert "train from its checkpoint" not in cli(*args, "--no-resume").out


@pytest.mark.parametrize("values", [{"step": 15, "layout": {"steps": 20}}, {"kept": {}}])
def test_a_dry_run_counts_the_steps_that_a_checkpoint_lacks(cli, tmp_path, values):
    args = ("run", "--model", "transformer", *TASK, *TINY, "--out", tmp_path, "--dry-run")
    (row,) = json.loads(cli(*args, "--format", "json").out)
    path = tmp_path / "checkpoints" / f"{row['id']}.safetensors"
    path.parent.mkdir()
    Checkpoint({}, values).save(path)
    (row,) = json.loads(cli(*args, "--format", "json").out)
    left = row["steps"] - values.get("step", row["steps"])
    assert row["time"] == pytest.approx(left / row["steps/s"])


def test_a_run_says_where_the_records_are_and_what_is_next(cli, tmp_path):
    out = tmp_path / "a b"
    outcome = cli("run", "--model", "zero,transformer", *TASK, *TINY, "--out", out)
    assert f"2 records of this command, in {out}" in outcome.err
    commands = [line.partition("  #")[0] for line in outcome.err.splitlines() if "  #" in line]
    assert len(commands) == 3
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "iclbench"
        assert cli(*words[1:]).code == 0, command


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ("0", "it must be a duration such as 30s, 10m, 2h or gpu-1h (got '0')"),
        ("-3m", "it must be a duration"),
        ("10", "it must be a duration"),
        ("abc", "it must be a duration"),
        ("0s", "it must be between 1s and 168h per seed"),
        ("1000h", "it must be between 1s and 168h per seed"),
        ("gpu-1h", "--budget gpu-1h is device time; on --device cpu it is core time"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused_in_a_line(cli, tmp_path, budget, reason):
    outcome = cli("run", "--model", "transformer", "--task", "least-squares", "--device", "cpu",
                  "--budget", budget, "--out", tmp_path)  # fmt: skip
    assert outcome.code == 2
    (line,) = outcome.err.strip().splitlines()
    assert reason in line


@pytest.mark.parametrize("debug", [False, True])
def test_a_run_that_fails_does_not_stop_the_next(cli, tmp_path, provide, monkeypatch, debug):
    class Failing(Averaging):
        name = "failing"

        def weights(self, examples, config):
            raise RuntimeError("no luck")

    provide("model", "failing", Failing)
    if debug:
        monkeypatch.setenv("ICLBENCH_DEBUG", "1")
    outcome = cli("run", "--model", "failing,zero", "--task", "least-squares", *TINY,
                "--out", tmp_path)  # fmt: skip
    assert outcome.code == 1
    # The last line of a plugin's code: the solver that this one derives from.
    reason = r"RuntimeError: no luck, at \w+\.py:\d+ \(ICLBENCH_DEBUG=1 shows the traceback\)"
    assert re.search(f"error: failing on least-squares: {reason}", outcome.err)
    assert ("Traceback" in outcome.err) == debug
    assert " zero " in outcome.out
    assert [p.name.split("-")[0] for p in tmp_path.glob("*/*.json")] == ["zero"]


def test_strict_fails_when_an_observer_was_dropped(cli, tmp_path):
    class Raising:
        @hookimpl
        def iclbench_run_started(self, spec):
            raise RuntimeError("no luck")

    observer = Raising()
    args = ("run", "--model", "zero", *TASK, *TINY, "--out", tmp_path)
    try:
        with host().observing(observer, "raising"):
            outcome = cli(*args, "--strict")
    finally:
        host().problems.clear()
    assert outcome.code == 2
    assert "no luck" in outcome.err
    assert " zero " in outcome.out


def test_weights_are_those_that_a_record_names(cli, tmp_path):
    run = ("run", "--model", "lsa", *TASK, *TINY)
    assert cli(*run, "--out", tmp_path / "trained").code == 0
    (record,) = (tmp_path / "trained").glob("least-squares/*.json")
    loaded = cli(*run, "--weights", record, "--out", tmp_path / "loaded")
    assert loaded.code == 0
    (copy,) = (tmp_path / "loaded").glob("least-squares/*.json")
    first, second = (json.loads(path.read_text("utf-8")) for path in (record, copy))
    assert second["spec"]["origin"] == "loaded"
    digests = [r["evaluations"]["main"]["metrics"] for r in (first, second)]
    assert digests[0] == digests[1]
    assert cli(*run, "--init", record, "--out", tmp_path / "tuned").code == 0
    (weights,) = (tmp_path / "trained").glob("objects/*/*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-4] + b"0000")
    changed = cli(*run, "--weights", record, "--out", tmp_path / "changed")
    assert changed.code == 2
    assert "SHA-256" in changed.err
    assert cli("run", "--model", "zero", *TASK, "--out", tmp_path / "solved").code == 0
    (solved,) = (tmp_path / "solved").glob("least-squares/*.json")
    refused = cli(*run, "--weights", solved, "--out", tmp_path / "refused")
    assert refused.code == 2
    assert refused.err.strip().endswith("is the record of a solver model without weights")


def test_all_impossible_pairs_are_named_at_once(cli, tmp_path):
    outcome = cli("run", "--model", "ridge,zero,lookup", "--task", "mqar,least-squares",
                  "--eval-prompts", "16", "--out", tmp_path)  # fmt: skip
    assert outcome.code == 2
    assert "ridge can't do mqar" in outcome.err
    assert "lookup can't do least-squares" in outcome.err
    assert not list(tmp_path.rglob("*.json"))
