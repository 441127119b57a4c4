"""The verbs besides `run`."""

from __future__ import annotations

import json

from tiny import TINY


def test_ls_lists_and_describe_describes(cli):
    names = [row["name"] for row in json.loads(cli("ls", "models", "--json").out)]
    assert {"transformer", "baseconv", "least-squares-qr", "zero"} <= set(names)
    assert "least-squares-prefixes" in cli("ls", "tasks").out
    assert {"smoke", "quick"} <= {r["name"] for r in json.loads(cli("ls", "recipes", "--json").out)}
    everything = cli("ls").out
    assert "executor local" in everything
    transformer = cli("describe", "transformer").out
    assert "heads (int) = 1" in transformer
    task = cli("describe", "least-squares").out
    assert "recipe paper" in task
    assert "steps = 1500" in cli("describe", "quick").out
    assert "iclbench 0" in cli("--version").out


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
    assert sum(line.startswith("4 ") for line in shown.out.splitlines()) == 1
    assert cli("run", "--model", "class-frequency", "--task", "categorical", "--metrics",
               "calibration", "--eval-prompts", 32, "--out", tmp_path / "c").code == 0  # fmt: skip
    analysed = cli("show", tmp_path / "c").out.splitlines()
    (line,) = [line for line in analysed if line.startswith("expected_calibration_error")]
    assert 0 < float(line.split()[1]) < 1
    nothing = cli("show", tmp_path / "elsewhere.json")
    assert nothing.code == 2
    assert nothing.err.count("\n") == 1


def test_verbs_that_do_not_work_yet_are_absent(cli):
    text = cli("--help").out
    for verb in ("run", "sweep", "ls", "describe", "plugins", "leaderboard", "verify", "submit",
                 "export", "push", "pull"):  # fmt: skip
        assert f" {verb} " in text
    for verb in ("new", "check"):
        assert f" {verb} " not in text
    assert "slurm" not in cli("sweep", "--help").out
