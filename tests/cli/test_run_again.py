"""`iclbench run` where a record exists: shifts are added and kept, and options do what they say."""

from __future__ import annotations

import csv
import json

import pytest
from tiny import TASK, TINY

from iclbench import RecordStore

SOLVER = ("run", "--model", "zero", *TASK, *TINY)


@pytest.fixture
def shifts(tmp_path):
    def held():
        (path,) = RecordStore(tmp_path).paths()
        return sorted(json.loads(path.read_text())["evaluations"])

    return held


def test_run_says_which_shifts_it_adds_and_force_keeps_them(cli, tmp_path, shifts):
    out = ("--out", tmp_path)
    assert cli(*SOLVER, *out).code == 0
    planned = cli(*SOLVER, *out, "--shift", "quadrants", "--dry-run")
    assert "adds 1 shift" in planned.out
    assert shifts() == ["main"]
    added = cli(*SOLVER, *out, "--shift", "quadrants")
    assert "; adding shifts: quadrants" in added.err
    assert "--force" not in added.err
    again = cli(*SOLVER, *out)
    assert "`run --force` replaces it" in again.err
    assert cli(*SOLVER, *out, "--force", "--shift", "skewed").code == 0
    assert shifts() == ["main", "quadrants", "skewed"]
    assert cli(*SOLVER, *out, "--force").code == 0
    assert shifts() == ["main", "quadrants", "skewed"]


def test_run_makes_a_damaged_record_again(cli, tmp_path, shifts):
    cli(*SOLVER, "--out", tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    path.write_text(path.read_text()[:-30])
    assert cli(*SOLVER, "--out", tmp_path, "--force").code == 0
    assert shifts() == ["main"]


@pytest.mark.parametrize("of", [("--task", "least-squares"), ("--suite", "SUITE")])
@pytest.mark.parametrize("style", [(), ("--format", "json")])
def test_a_plan_names_a_damaged_record_and_shows_the_other_runs(cli, tmp_path, of, style):
    suite, out = tmp_path / "one.toml", tmp_path / "out"
    suite.write_text(
        'name = "one"\nversion = 1\nsummary = "one"\n[defaults]\nchance = "zero"\n'
        'eval_prompts = 32\n[[board]]\nname = "plain"\ntask = "least-squares"\n'
    )
    words = [str(suite) if word == "SUITE" else word for word in of]
    command = ("run", "--model", "zero,averaging", *words, "--out", out, *style)
    assert cli(*command).code == 0
    path = next(path for path in RecordStore(out).paths() if path.name.startswith("zero"))
    path.write_text(path.read_text()[:-30])
    planned = cli(*command, "--dry-run")
    assert (planned.code, f"error: {path}: it is truncated" in planned.err) == (2, True)
    assert "record is damaged" in planned.out
    assert "record exists" in planned.out
    if "--suite" not in of:
        forced = cli(*command, "--dry-run", "--force")
        assert (forced.code, "record is damaged" in forced.out) == (0, False)


def test_run_says_how_a_record_without_its_values_is_made_again(cli, tmp_path):
    cli("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path)
    for path in tmp_path.glob("objects/*/*"):
        path.unlink()
    outcome = cli(*SOLVER, "--out", tmp_path)
    assert outcome.code == 2
    assert "; `run --force` makes the record again" in outcome.err


def test_run_adds_to_a_record_only_the_shifts_that_are_named(cli, tmp_path, shifts):
    cli(*SOLVER, "--out", tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    outcome = cli("run", "--weights", path)
    assert outcome.code == 2
    assert "needs --shift NAME, or all" in outcome.err
    assert shifts() == ["main"]
    other = cli("run", "--weights", "weights.safetensors", "--shift", "noisy")
    assert other.code == 2
    assert "weights.safetensors is not a record (*.json): --model and --task need" in other.err


def test_run_says_which_options_of_training_have_no_effect(cli, tmp_path):
    outcome = cli(*SOLVER, "--out", tmp_path, "--engine", "plain", "--tune")
    assert outcome.code == 0
    assert "ignored, as nothing is trained: --engine, --seeds, --tune" in outcome.err
    both = cli("run", "--model", "zero,transformer", *TASK, *TINY, "--out", tmp_path, "--dry-run")
    assert "nothing is trained" not in both.err


def test_records_in_folders_of_folders_are_told(cli, tmp_path):
    cli(*SOLVER, "--out", tmp_path)
    cli("run", "--model", "averaging", *TASK, *TINY, "--out", tmp_path / "later")
    outcome = cli("leaderboard", "show", tmp_path)
    assert f"the records below {tmp_path / 'later'} are not included" in outcome.err
    assert "averaging" not in outcome.out


def test_records_of_a_campaign_beside_its_boards_are_not_told(cli, tmp_path):
    cli(*SOLVER, "--out", tmp_path)
    cli("run", "--model", "averaging", *TASK, *TINY, "--out", tmp_path / "tuning")
    assert "not included" not in cli("leaderboard", "show", tmp_path).err


def test_show_refuses_columns_first_and_names_its_rows(cli, tmp_path):
    cli("run", "--model", "zero,averaging", *TASK, *TINY, "--out", tmp_path)
    refused = cli("show", tmp_path, "--columns", "foo")
    assert (refused.code, refused.out) == (2, "")
    rows = list(csv.DictReader(cli("show", tmp_path, "--format", "csv").out.splitlines()))
    assert {(row["model"], row["task"]) for row in rows} == {
        ("zero", "least-squares"), ("averaging", "least-squares")
    }  # fmt: skip


def test_a_spec_in_csv_is_json(cli, tmp_path):
    outcome = cli(*SOLVER, "--out", tmp_path, "--dry-run", "--format", "csv")
    (row,) = csv.DictReader(outcome.out.splitlines())
    assert json.loads(row["spec"])["model"] == "zero"


def test_a_column_that_is_headed_by_what_ranks_is_suggested(cli, tmp_path):
    outcome = cli(*SOLVER, "--out", tmp_path, "--sort", "digit")
    assert outcome.code == 2
    assert "did you mean 'digits'?" in outcome.err


@pytest.mark.parametrize("words", [("--dry-run",), ("--tune", "--trials", "1"), ()])
def test_an_unknown_shift_is_refused_before_any_time_is_spent(cli, tmp_path, words):
    run = ("run", "--model", "zero,transformer", *TASK, *TINY, "--out", tmp_path)
    outcome = cli(*run, "--shift", "quadrant", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert "unknown shift 'quadrant'; did you mean 'quadrants'?" in outcome.err
    assert not list(tmp_path.rglob("*.json"))
