"""`iclbench campaign`: the plan, a run, and mistakes."""

from __future__ import annotations

import pytest

CAMPAIGN = """
trials = 0
[[stage]]
name = "first"
summary = "small"
suite = "smoke"
boards = ["least-squares"]
models = ["lsa", "gd-transformer"]
fields = { budget = "1s", seeds = 1 }
"""

SUITE = """
name = "tiny"
version = 1
summary = "one board"
[[board]]
name = "least-squares"
task = "least-squares"
task_args = { dim = 2, examples = 4 }
recipe = "smoke"
eval_prompts = 16
chance = "zero"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "campaign.toml"
    path.write_text(CAMPAIGN)
    return path


def test_the_plan_says_what_is_left_and_a_run_finishes_it(cli, file, tmp_path):
    command = ("campaign", file, "--out", tmp_path / "out", "--device", "cpu")
    plan = cli(*command, "--dry-run", "--workers", "2")
    assert plan.code == 0
    assert "first: small\n  0 of 2 done, 1 s left" in plan.out
    assert "lsa: train 1 seed for 1s of core time\n" in plan.out
    assert "gd-transformer: unsupported: it answers class" in plan.out
    # The second cell is a solver, so that two workers are no faster than one.
    assert "left: 1 s of training, or at least 1 s with 2 at once; evaluation" in plan.out
    assert not (tmp_path / "out").exists()
    done = cli(*command)
    assert done.code == 0
    assert "first: lsa on least-squares: done" in done.out
    assert "2 of 2 done" in cli(*command, "--dry-run").out
    again = cli(*command)
    assert (again.code, again.out) == (0, "")
    assert f"records in {tmp_path / 'out'}: iclbench leaderboard show" in again.err


def test_trainings_with_fixed_steps_are_told_beside_the_hours(cli, file, tmp_path):
    suite = tmp_path / "tiny.toml"
    suite.write_text(SUITE)
    text = CAMPAIGN.replace('"smoke"', f'"{suite.as_posix()}"').replace('budget = "1s", ', "")
    file.write_text(text)
    command = ("campaign", file, "--out", tmp_path / "out", "--device", "cpu")
    plan = cli(*command, "--dry-run").out
    assert "left: 1 training with fixed steps; evaluation" in plan
    limited = cli(*command, "--hours", "1")
    assert "1 training with fixed steps: their hours are unknown" in limited.out + limited.err
    plan = cli(*command, "--dry-run").out
    assert "2 of 2 done\n" in plan
    assert plan.endswith("left: no training\n")


def test_cells_of_an_earlier_stage_are_not_repeated(cli, file, tmp_path):
    same = CAMPAIGN.partition("[[stage]]")[2].replace('"first"', '"second"')
    file.write_text(f"{CAMPAIGN}[[stage]]{same}")
    plan = cli("campaign", file, "--out", tmp_path / "out", "--dry-run").out
    assert "second: small\n  its cells are all in earlier stages\nleft: " in plan
    assert plan.count("gd-transformer: unsupported") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "cuda:99"), "does not exist"),
        (("--device", "cuda:1", "--workers", "2"), "several workers use one GPU each"),
        (("--device", "cuda:99", "--dry-run"), "does not exist"),
        (("--hours", "1", "--dry-run"), "leave out --hours"),
    ],
)
def test_what_a_campaign_cannot_do_is_refused_before_any_cell(
    cli, file, tmp_path, options, message
):
    refused = cli("campaign", file, "--out", tmp_path / "out", *options)
    assert (refused.code, refused.out, message in refused.err) == (2, "", True), refused.err
    assert not (tmp_path / "out").exists()


def test_mistakes_are_one_line(cli, file, tmp_path):
    assert "unknown stage 'second'" in cli("campaign", file, "--stage", "second").err
    assert cli("campaign", tmp_path / "missing.toml").code == 2
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('[[grid]]\nmodel = "zero"\ntask = "least-squares"\n')
    assert f"`iclbench sweep {sweep}` runs it" in cli("campaign", sweep).err
    assert f"`iclbench campaign {file}` runs it" in cli("sweep", file).err
    file.write_text(CAMPAIGN.replace("gd-transformer", "nobody"))
    planned = cli("campaign", file, "--out", tmp_path / "out", "--dry-run")
    assert planned.code == 1
    assert "unknown model 'nobody'" in planned.out
    failed = cli("campaign", file, "--out", tmp_path / "out", "--device", "cpu")
    assert failed.code == 1
    assert "nobody" in failed.err
