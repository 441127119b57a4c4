"""`iclbench run --suite`, `iclbench leaderboard suite`, and suites in `ls` and `describe`."""

from __future__ import annotations

import json
import re

import pytest
from tiny import TASK, TINY

from iclbench_solvers.simple import Zero

TEXT = """
name = "tiny"
version = 2
summary = "two boards"

[defaults]
recipe = "smoke"
seeds = 2
eval_prompts = 32
chance = "zero"

[[board]]
name = "regression"
task = "least-squares"
task_args = { dim = 2, examples = 4 }

[[board]]
name = "systems"
task = "linear-system"
task_args = { sizes = "2-3" }
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT)
    return path


def test_a_model_gets_a_row_on_every_board_that_it_supports(cli, tmp_path, suite):
    args = ("run", "--model", "transformer", "--suite", suite, "--out", tmp_path / "out")
    first = cli(*args)
    assert first.code == 0, first.err
    head = first.out[: first.out.index("\n\n")]
    assert "suite tiny v2: two boards" in head
    assert "regression  transformer: train 2 seeds for 20 steps" in head
    assert "systems     transformer: unsupported: it is built for prompts of one size" in head
    assert "cost: 1 training with fixed steps" in head
    assert re.search(r"^transformer .* trained +open +untuned ", first.out, re.M)
    assert "transformer: unsupported: it is built" in first.out[first.out.index("systems ·") :]
    names = sorted(path.parent.name for path in (tmp_path / "out").glob("*/*.json"))
    assert names == ["least-squares", "least-squares", "linear-system"]
    again = cli(*args)
    assert "regression  transformer: record exists" in again.out
    assert "cost: nothing to train" in again.out
    assert "training" not in again.err
    shown = cli("leaderboard", "suite", suite, "--out", tmp_path / "out")
    assert shown.code == 0
    assert shown.out.splitlines()[0] == "suite tiny v2"
    assert (
        shown.out.splitlines()[:8] == again.out[again.out.index("\nsuite") + 1 :].splitlines()[:8]
    )


def test_boards_without_records_are_one_line(cli, tmp_path, suite):
    cli("run", "--model", "averaging,jacobi", "--suite", suite, "--out", tmp_path)
    assert "no records yet" not in cli("leaderboard", "suite", suite, tmp_path).out
    for path in (tmp_path / "linear-system").glob("*.json"):
        path.unlink()
    shown = cli("leaderboard", "suite", suite, tmp_path).out
    assert shown.splitlines()[-1] == "no records yet: systems"
    assert "systems · 0:" not in shown


def test_a_dry_run_prints_the_cost_and_runs_nothing(cli, tmp_path, suite):
    outcome = cli("run", "--model", "baseconv,transformer", "--suite", suite, "--dry-run",
                  "--budget", "10m", "--seeds", "3", "--model-args", "transformer.layers=1",
                  "--out", tmp_path / "out")  # fmt: skip
    assert outcome.code == 0
    assert "baseconv: train 3 seeds × 10m = 30m of core time" in outcome.out
    assert outcome.out.splitlines()[-1] == "cost: 1h of core time, not counting evaluation"
    assert not (tmp_path / "out").exists()


def test_a_dry_run_with_a_tuning_trains_though_the_untuned_run_has_a_record(cli, tmp_path, suite):
    args = ("run", "--model", "baseconv", "--out", tmp_path / "out")
    on_suite = (*args, "--suite", suite, "--dry-run")
    assert cli(*args, "--suite", suite).code == 0
    assert "cost: nothing to train" in cli(*on_suite).out
    tuned = cli(*on_suite, "--tune", "--trials", "2").out
    cost = "cost: 1 training with fixed steps, not counting evaluation"
    assert f"{cost}\ntuning: 2 trials on the board" in tuned
    assert "regression  baseconv: train" in tuned
    assert "zero: record exists" in tuned
    alone = (*args, *TASK, *TINY)
    assert cli(*alone).code == 0
    assert "record exists" in cli(*alone, "--dry-run").out
    assert "record exists" not in cli(*alone, "--dry-run", "--tune").out


def test_scores_are_printed_in_other_formats_and_with_chosen_columns(cli, tmp_path, suite):
    args = ("run", "--model", "averaging", "--suite", suite, "--out", tmp_path / "out")
    rows = json.loads(cli(*args, "--format", "json").out)
    assert {row["model"] for row in rows} == {"zero", "averaging"}
    shown = cli("leaderboard", "suite", suite, "--out", tmp_path / "out", "--format", "csv",
                "--columns", "model,regression", "--sort", "-regression")  # fmt: skip
    head, *lines = shown.out.splitlines()
    assert head == "model,regression"
    scores = {model: float(score) for model, score in (line.split(",") for line in lines)}
    assert set(scores) == {"zero", "averaging"}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    page = json.loads(cli(*args, "--dry-run", "--format", "json").out)
    assert {row["does"] for row in page} == {"record exists"}


def test_a_failing_board_stops_no_other_and_the_exit_code_is_1(cli, tmp_path, suite, provide):
    class Failing(Zero):
        name = "failing"

        def build(self, signature, config):
            raise RuntimeError("no luck")

    provide("model", "failing", Failing)
    outcome = cli("run", "--model", "failing,zero", "--suite", suite, "--out", tmp_path)
    assert outcome.code == 1
    assert "failing: failed: RuntimeError: no luck" in outcome.out
    assert "iclbench show" not in outcome.err  # a solver's record is not what was asked for
    assert "no luck" in outcome.err
    assert "\nzero " in outcome.out


def test_a_model_that_cannot_be_planned_stops_no_other(cli, tmp_path, suite, provide):
    class Raising(Zero):
        name = "raising"

        def supports(self, signature, config):
            raise ValueError("oops")

    provide("model", "raising", Raising)
    args = ("--suite", suite, "--out", tmp_path)
    outcome = cli("run", "--model", "raising,averaging", *args)
    assert outcome.code == 1
    assert "error: raising on regression can't be planned: ValueError: oops" in outcome.out
    assert "\naveraging " in outcome.out
    alone = cli("run", "--model", "raising", *args)
    assert alone.code == 2
    reason = "board regression: raising on regression can't be planned: ValueError: oops"
    assert alone.err == f"iclbench: error: suite tiny: {reason}\n"


@pytest.mark.parametrize(
    ("chance", "reason"),
    [
        (
            "zeroo",
            "unknown model 'zeroo'; did you mean 'zero'? `iclbench plugins` lists what is "
            "installed here",
        ),
        ("class-frequency", "class-frequency can't do it: it answers class, not query"),
    ],
)
def test_a_board_that_nothing_scores_is_refused_before_training(cli, tmp_path, chance, reason):
    path, out = tmp_path / "tiny.toml", tmp_path / "out"
    path.write_text(TEXT.replace('"regression"', f'"regression"\nchance = "{chance}"'))
    outcome = cli("run", "--model", "transformer", "--suite", path, "--out", out)
    line = f"iclbench: error: suite tiny: board regression: {reason}"
    assert (outcome.code, outcome.err) == (2, f"{line}\n")
    assert not list(out.rglob("*.json"))
    # Records of the other board still have scores.
    assert cli("run", "--model", "zero", "--task", "linear-system", "--task-args", "sizes=2-3",
               "--eval-prompts", 32, "--out", out).code == 0  # fmt: skip
    shown = cli("leaderboard", "suite", path, out)
    assert shown.code == 2
    assert "\nzero " in shown.out
    assert shown.err == f"{line}; it has no scores\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--suite", "tiny.toml", "--task", "ridge"), "leave out --task"),
        (("--suite", "tiny.toml", "--task-args", "dim=3"), "the suite tiny sets task_args"),
        (("--suite", "tiny.toml", "--dtype", "float32"), "the suite tiny sets dtype"),
        (("--suite", "tiny.toml", "--model-args", "layer=3"), "did you mean 'layers'"),
        (("--suite", "nonesuch"), "unknown suite 'nonesuch'"),
        (("--suite", "missing.toml"), "missing.toml"),
        (("--suite", "tiny.toml", "--tune", "--tuned", "x.json"), "choose one"),
        (("--suite", "tiny.toml", "--tuned", "x.json"), "x.json can't be read"),
        ((), "or give --suite"),
    ],
)
def test_bad_usage_is_one_line(cli, tmp_path, monkeypatch, suite, args, message):
    monkeypatch.chdir(tmp_path)
    outcome = cli("run", "--model", "transformer", *args)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_ls_and_describe_show_suites(cli, suite, provide):
    provide("suite", "tiny", suite)
    assert "tiny" in cli("ls", "suites").out
    described = cli("describe", "suite", "tiny")
    assert described.code == 0
    assert "Version 2: 2 boards" in described.out
    assert re.search(r"^regression +least-squares +dim=2, examples=4 .* zero +floor or best$",
                     described.out, re.M)  # fmt: skip
    assert "$ iclbench run --model MODEL --suite tiny" in described.out
    assert cli("describe", "tiny").out == described.out
    assert "did you mean 'suite'" in cli("describe", "siute", "tiny").err
    assert cli("describe", "task", "tiny").code == 2


def test_a_suite_of_a_missing_folder_is_refused(cli, suite, tmp_path):
    outcome = cli("leaderboard", "suite", suite, "--out", tmp_path / "missing")
    assert outcome.code == 2
    assert "there is no folder" in outcome.err


def test_a_folder_without_records_of_the_suite_is_refused(cli, suite, tmp_path):
    (tmp_path / "empty").mkdir()
    for given in ([tmp_path / "empty"], ["--out", tmp_path / "empty"]):
        outcome = cli("leaderboard", "suite", suite, *given)
        assert outcome.code == 2
        assert "there are no records of the suite tiny" in outcome.err


def test_a_solver_with_arguments_runs_beside_the_board_s_own(cli, tmp_path):
    path = tmp_path / "solvers.toml"
    path.write_text(
        'name = "solvers"\nversion = 1\nsummary = "s"\n[[board]]\nname = "a"\ntask = "ridge"\n'
        'chance = "zero"\nreference = "ridge"\neval_prompts = 32\n'
    )
    ran = cli("run", "--suite", path, "--model", "ridge", "--model-args", "ridge=0.5",
              "--out", tmp_path / "out")  # fmt: skip
    assert ran.code == 0, ran.err
    assert len(list((tmp_path / "out" / "ridge").glob("ridge-*.json"))) == 2


def test_a_damaged_record_is_left_out_of_the_scores_with_an_error(cli, tmp_path, suite):
    out = tmp_path / "out"
    assert cli("run", "--suite", suite, "--model", "zero,averaging", "--out", out).code == 0
    damaged = next(out.glob("least-squares/averaging-*.json"))
    damaged.write_text(damaged.read_text()[:-9])
    shown = cli("leaderboard", "suite", suite, out)
    assert shown.code == 2
    assert f"error: {damaged}" in shown.err
    assert "zero" in shown.out
