"""`leaderboard figure`: an option that would be ignored is refused by its name."""

from __future__ import annotations

import pytest

from iclbench import run, sweep
from iclbench.cli.figures import ONLY_WITH

GRID = {"model": "gru", "recipe": "smoke", "model_args": {"layers": [2, 10, 1]}}
TASK = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 8}
SWEEP = """
[figure]
x = "dtype"
[defaults]
task = "least-squares"
eval_prompts = 8
[[grid]]
model = "zero"
"""
VALUES = {"--statistic": "mean", "--records": ".", "--size": "paper"}
#: The flag of the option that the command calls `size`.
FLAGS = {name: f"--{name}" for name in ONLY_WITH}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    (folder / "sweep.toml").write_text(SWEEP)
    run("zero", "least-squares", eval_prompts=8, out=folder / "records")
    return folder


def of(flag):
    return flag, VALUES.get(flag, "model")


@pytest.mark.parametrize("flag", ["--y", "--statistic", "--lines", "--panels"])
@pytest.mark.parametrize("what", ["sweep.toml", "least-squares/prefixes"])
def test_options_of_records_are_refused_for_a_study(cli, folder, flag, what):
    path = folder / what if what.endswith("toml") else what
    outcome = cli("leaderboard", "figure", path, *of(flag), "--file", folder / "a.html")
    assert outcome.code == 2
    assert outcome.err.startswith(f"iclbench: error: {flag} works only with records and --x")
    assert outcome.err.count("\n") == 1
    assert not (folder / "a.html").exists()


@pytest.mark.parametrize("flag", ["--records", "--size"])
@pytest.mark.parametrize("kind", [("--x", "dtype"), ("--maps", "boundary")])
def test_options_of_studies_are_refused_for_records(cli, folder, flag, kind):
    outcome = cli("leaderboard", "figure", folder / "records", *kind, *of(flag))
    assert outcome.code == 2
    assert outcome.err == (f"iclbench: error: {flag} works only with a study or a sweep file\n")


@pytest.mark.parametrize("flag", sorted(FLAGS.values()))
def test_no_option_is_ignored_where_studies_are_listed(cli, flag):
    outcome = cli("leaderboard", "figure", *of(flag))
    assert outcome.code == 2
    assert outcome.err == f"iclbench: error: {flag} needs a study, a sweep file or records\n"


def test_maps_have_no_axes(cli, folder):
    for flag in ("--y", "--panels", "--statistic"):
        outcome = cli("leaderboard", "figure", folder / "records", "--maps", "m", *of(flag))
        assert f"{flag} works only with records and --x" in outcome.err
    both = cli("leaderboard", "figure", folder / "records", "--maps", "m", "--x", "dtype")
    assert "give either --x or --maps, not both" in both.err


def test_a_sweep_file_is_no_record(cli, folder):
    path = folder / "sweep.toml"
    drawn = cli("leaderboard", "figure", path, "--x", "dtype")
    assert drawn.code == 2
    assert f"{path} is a sweep file, whose [figure] says what is drawn" in drawn.err
    for verb in ("show", "verify", "submit"):
        outcome = cli(verb, path)
        assert outcome.code == 2
        assert f"{path} is not a record" in outcome.err
        assert f"`iclbench leaderboard figure {path}`" in outcome.err
        assert "truncated" not in outcome.err


def test_the_statistic_of_records_can_be_chosen(cli, folder):
    page = folder / "chosen.html"
    outcome = cli("leaderboard", "figure", folder / "records", "--x", "dtype", "--statistic",
                  "median", "--file", page)  # fmt: skip
    assert outcome.code == 0
    assert "median squared error" in page.read_text("utf-8")


def test_lines_of_a_folder_are_in_the_order_of_their_numbers(cli, tmp_path):
    sweep({"defaults": TASK, "grid": [GRID]}, out=tmp_path)
    page = tmp_path / "page.html"
    outcome = cli("leaderboard", "figure", tmp_path, "--x", "training", "--file", page)
    assert outcome.code == 0
    text = page.read_text("utf-8")
    places = [text.index(f"GRU, {name}, seed 0") for name in ("1 layer", "2 layers", "10 layers")]
    assert places == sorted(places)


def test_a_file_without_an_ending_needs_a_format(cli, folder, tmp_path):
    args = ("leaderboard", "figure", folder / "records", "--x", "dtype")
    outcome = cli(*args, "--file", tmp_path / "figure")
    assert (outcome.code, "has no ending that names a format: give --format" in outcome.err) == (
        2,
        True,
    )
