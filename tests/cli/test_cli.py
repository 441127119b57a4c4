"""The verbs besides `run`."""

from __future__ import annotations

import json
import shutil

import pytest
from tiny import TINY

from iclbench.display import entries


def test_ls_lists_and_describe_describes(cli):
    names = [row["name"] for row in json.loads(cli("ls", "models", "--json").out)]
    assert {"transformer", "baseconv", "least-squares-qr", "zero"} <= set(names)
    assert "least-squares-prefixes" in cli("ls", "tasks").out
    assert {"smoke", "quick"} <= {r["name"] for r in json.loads(cli("ls", "recipes", "--json").out)}
    everything = cli("ls").out
    assert "executor  local" in everything
    assert "iclbench 0" in cli("--version").out


def test_a_verb_that_ctrl_c_ends_says_so(cli, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(entries, "describe", interrupt)
    outcome = cli("describe", "zero")
    assert (outcome.code, outcome.err) == (130, "iclbench: interrupted\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("least", "squares"), "did you mean 'least-squares'?"),
        (("nosuch", "squares"), "unknown kind 'nosuch'"),
        (("model",), "model is a kind: give a name after it"),
    ],
)
def test_a_name_that_describe_cannot_find_is_explained(cli, words, told):
    outcome = cli("describe", *words)
    assert (outcome.code, told in outcome.err) == (2, True), outcome.err


def test_verify_reports_which_numbers_hold(cli, tmp_path):
    cli("run", "--model", "zero,baseconv", "--task", "least-squares", *TINY, "--out", tmp_path)
    outcome = cli("verify", tmp_path)
    assert outcome.code == 0
    assert outcome.out.count("facts hold\n") == 2
    assert "squared_error mean: recorded" in cli("verify", tmp_path, "--all").out
    assert "tolerance: relative 0.001 in float32" in outcome.out
    from iclbench.runs.store import read_record

    path = next(p for p in tmp_path.glob("*/*.json") if p.name.startswith("baseconv"))
    record = read_record(path)
    path.write_text(record.model_copy(update={"parameters": 3}).sealed().model_dump_json())
    lied = cli("verify", tmp_path)
    assert lied.code == 1
    assert "parameters: recorded 3, computed" in lied.out
    path.write_text(path.read_text()[:-9])
    assert cli("verify", tmp_path).code == 2


def test_sweep_prints_tables_and_failures(cli, tmp_path):
    from iclbench.runs.store import read_record

    file = tmp_path / "sweep.toml"
    file.write_text(
        """
        [defaults]
        task = "least-squares"
        recipe = "smoke"
        seeds = 1
        eval_prompts = 32
        [[grid]]
        model = ["zero", "averaging"]
        dtype = ["float32", "float64"]
        """
    )
    outcome = cli("sweep", file, "--out", tmp_path / "r")
    assert outcome.code == 0
    assert "4 runs: 0 skipped, 4 to run" in outcome.out
    assert outcome.out.count("ranked by its mean digits") == 2
    assert "4 runs: 4 skipped, 0 to run" in cli("sweep", file, "--out", tmp_path / "r").out
    file.write_text(file.read_text().replace('"averaging"', '"averagin"'))
    failing = cli("sweep", file, "--out", tmp_path / "r")
    assert failing.code == 1
    assert "did you mean 'averaging'" in failing.err
    # A record whose values are missing has no row; it hides neither the others nor the failures.
    record = read_record(next((tmp_path / "r").glob("least-squares/zero-*.json")))
    (tmp_path / "r" / record.main.values["squared_error"].name).unlink()
    damaged = cli("sweep", file, "--out", tmp_path / "r")
    assert damaged.code == 1
    assert "did you mean 'averaging'" in damaged.err
    assert damaged.err.count("can't be read") == 1
    assert damaged.out.count("ranked by its mean digits") == 1


def test_show_prints_metrics_floor_and_curves(cli, tmp_path):
    arguments = ("--model", "gradient-descent", "--task", "least-squares-prefixes")
    cli("run", *arguments, "--task-args", "dim=2,examples=4",
        "--eval-prompts", 32, "--out", tmp_path)  # fmt: skip
    shown = cli("show", tmp_path)
    assert shown.code == 0
    assert (
        "gradient-descent on least-squares-prefixes v2 · solver · float32 · 32 prompts" in shown.out
    )
    assert "attainable" in shown.out
    assert "of the absolute error" in shown.out
    assert "prefix_error by prefix" in shown.out
    assert sum(line.lstrip().startswith("4  ") for line in shown.out.splitlines()) == 1
    assert cli("run", "--model", "class-frequency", "--task", "categorical", "--metrics",
               "calibration", "--eval-prompts", 32, "--out", tmp_path / "c").code == 0  # fmt: skip
    analysed = cli("show", tmp_path / "c").out.splitlines()
    (line,) = [line for line in analysed if line.startswith("expected_calibration_error")]
    assert 0 < float(line.split()[1]) < 1
    nothing = cli("show", tmp_path / "elsewhere.json")
    assert nothing.code == 2
    assert nothing.err.count("\n") == 1


def test_show_draws_curves_where_asked(cli, tmp_path, monkeypatch):
    cli("run", "--model", "transformer", "--task", "least-squares-prefixes", *TINY,
        "--recipe-args", "steps=60", "--out", tmp_path)  # fmt: skip
    assert "┌" not in cli("show", tmp_path).out
    monkeypatch.setenv("COLUMNS", "80")
    outcome = cli("show", tmp_path, "--plot")
    assert outcome.code == 0
    for title in ("prefix_error by prefix", "validation: mean digits", "training loss by step"):
        assert title in outcome.out
    drawn = [line for line in outcome.out.splitlines() if "│" in line]
    assert max(map(len, drawn)) <= 80
    assert any("1e" in line for line in drawn)
    assert "\x1b[" not in outcome.out


def test_show_prints_one_table_of_all_records_as_json(cli, tmp_path):
    cli("run", "--model", "zero,averaging", "--task", "least-squares", *TINY, "--out", tmp_path)
    rows = json.loads(cli("show", tmp_path, "--format", "json").out)
    assert len({row["record"] for row in rows}) == 2
    assert all(isinstance(row["mean"], float) for row in rows)
    assert cli("show", tmp_path, "--columns", "nmae").code == 2


def test_verify_is_silent_about_other_code_where_everything_holds(cli, tmp_path):
    from iclbench.runs.store import RecordStore, read_record

    cli("run", "--model", "zero", "--task", "least-squares", *TINY, "--out", tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    record = read_record(path)
    plugins = [p.model_copy(update={"source": "0" * 64}) for p in record.plugins]
    path.write_text(record.model_copy(update={"plugins": plugins}).sealed().model_dump_json())
    outcome = cli("verify", tmp_path)
    assert outcome.code == 0
    assert "other code" not in outcome.out
    assert "stale: made by other code of iclbench" in cli("verify", tmp_path, "--all").out


def test_verify_ends_with_a_summary(cli, tmp_path):
    cli("run", "--model", "zero,averaging,ridge", "--task", "least-squares", *TINY,
        "--out", tmp_path)  # fmt: skip
    paths = sorted(tmp_path.glob("*/*.json"))
    content = json.loads(paths[0].read_text())
    paths[0].write_text(json.dumps(content)[:-9])
    outcome = cli("verify", tmp_path)
    assert outcome.code == 2
    last = outcome.out.splitlines()[-1]
    assert last.startswith("2 of 3 records hold, 1 can't be verified (")


def test_the_published_boards_are_shown_where_there_are_no_others(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = cli("leaderboard", "show")
    assert outcome.code == 2
    assert "there is no folder results" in outcome.err
    cli("run", "--model", "zero", "--task", "least-squares", *TINY,
        "--out", "leaderboards/records")  # fmt: skip
    outcome = cli("leaderboard", "show")
    assert outcome.code == 0
    assert " zero " in outcome.out
    assert "showing the records of leaderboards/records" in outcome.err
    for folder in ("leaderboards", "leaderboards/records"):
        assert cli("leaderboard", "show", folder).out == outcome.out
    assert cli("leaderboard", "show", "leaderboards", "--out", "leaderboards").out == outcome.out


def test_folders_are_shown_as_one_board(cli, tmp_path):
    mine, published = tmp_path / "mine", tmp_path / "published"
    for models, folder in (("zero,newton", mine), ("zero,averaging", published / "records")):
        cli("run", "--model", models, "--task", "least-squares", *TINY, "--out", folder)
    out = cli("leaderboard", "show", mine, published).out
    assert out.count("ranked by") == 1
    assert [out.count(f" {name} ") for name in ("zero", "newton", "averaging")] == [1, 1, 1]
    nowhere = cli("leaderboard", "show", mine, tmp_path / "other")
    assert (nowhere.code, nowhere.err.count("\n")) == (2, 1)


def test_a_folder_without_the_files_of_its_records_is_told_in_one_line(cli, tmp_path):
    cli("run", "--model", "zero,newton", "--task", "least-squares", *TINY, "--out", tmp_path)
    shutil.rmtree(tmp_path / "objects")
    for words in (["leaderboard", "show", tmp_path], ["verify", tmp_path, "--device", "cpu"]):
        code, _, err = cli(*words)
        assert (code, err.count("\n")) == (2, 1)
        assert "git sparse-checkout disable" in err


def test_many_boards_are_shown_a_line_each(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("iclbench.cli.leaderboard.MOST_BOARDS", 1)
    cli("run", "--model", "zero", "--task", "least-squares,ridge", *TINY[2:], "--out", tmp_path)
    short = cli("leaderboard", "show", tmp_path).out
    assert "ranked by" not in short
    assert "Use --task NAME for the boards of one task" in short
    assert cli("leaderboard", "show", tmp_path, "--all").out.count("ranked by") == 2
    assert cli("leaderboard", "show", tmp_path, "--task", "ridge").out.count("ranked by") == 1
    unknown = cli("leaderboard", "show", tmp_path, "--task", "rigde")
    assert (unknown.code, unknown.out) == (2, "")
    assert "unknown task of these records 'rigde'; did you mean 'ridge'?" in unknown.err
    board = cli("leaderboard", "show", tmp_path, "--task", "emoji")
    assert "(board emoji of a suite is of task imagenet)" in board.err
    assert "(it is a task)" in cli("run", "--model", "multiply", "--task", "square").err
    assert len(json.loads(cli("leaderboard", "show", tmp_path, "--format", "json").out)) == 4


def test_the_help_lists_the_verbs(cli):
    text = cli("--help").out
    for verb in ("run", "sweep", "ls", "describe", "plugins", "leaderboard", "verify", "submit",
                 "export", "push", "pull", "view"):  # fmt: skip
        assert f" {verb} " in text
