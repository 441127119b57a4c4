"""`--tracker` and `--tracker-args`."""

from __future__ import annotations

import pytest
from support import run_python

from iclbench.cli.tracker_options import _by_tracker

RUN = ("run", "--model", "zero", "--task", "least-squares", "--eval-prompts", 8)


def test_a_tracker_follows_a_run_of_the_command_line(sample_plugin, cli, tmp_path):
    outcome = cli(*RUN, "--tracker", "fine-tracker", "--out", tmp_path / "results")
    assert outcome.code == 0
    assert outcome.out.splitlines()[:2] == ["start zero", "finish diverged"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tracker", "tensorbord"), "unknown tracker 'tensorbord'; did you mean 'tensorboard'?"),
        (("--tracker-args", "a=1"), "--tracker-args needs --tracker"),
        (("--tracker", "tensorboard", "--tracker-args", "floder=x"), "did you mean 'folder'?"),
        (("--tracker", "tensorboard,mlflow", "--tracker-args", "folder=x"), "matches none of"),
    ],
)
def test_a_bad_request_is_refused_in_one_line(cli, tmp_path, options, message):
    outcome = cli(*RUN, *options, "--out", tmp_path)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert message in outcome.err
    assert not list(tmp_path.iterdir())


def test_arguments_belong_to_one_tracker_or_say_whose_they_are():
    assert _by_tracker(["a"], {"x": 1, "a.y": 2}) == {"a": {"x": 1, "y": 2}}
    assert _by_tracker(["a", "b"], {"b.x": 1}) == {"b": {"x": 1}}


@pytest.mark.slow
def test_nothing_is_imported_unless_it_is_asked_for(tmp_path):
    for name in ("tensorboard", "wandb", "mlflow", "trackio"):
        source = "raise SystemExit(f'{__name__} was imported')"
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
    arguments = ("-m", "iclbench", *map(str, RUN), "--out", str(tmp_path / "results"))
    done = run_python(*arguments, path=tmp_path)
    assert done.returncode == 0, done.stderr
