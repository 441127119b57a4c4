"""Options of `iclbench tune`, and of the runs that use a tuning, say what they do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tiny import MODEL, TASK, TINY

from iclbench.cli import tune
from iclbench.runs.statistics import GRADE
from iclbench.training.loop import Training

TUNE = ("tune", *MODEL, *TASK, *TINY, "--trials", "1")


def test_a_tuning_for_other_prompts_is_refused_before_anything_is_trained(cli, tmp_path):
    assert cli(*TUNE, "--out", tmp_path).code == 0
    tuned = ("--tuned", tmp_path / "tunings", "--out", tmp_path)
    outcome = cli("run", *MODEL, *TASK, *TINY, "--eval-seed", "7", *tuned)
    assert outcome.code == 2
    assert "made for another evaluation seed than the run's, 7: tune again" in outcome.err
    assert cli("run", *MODEL, *TASK, *TINY, *tuned).code == 0
    assert cli("verify", *tmp_path.glob("least-squares/*.json")).code == 0


def test_a_run_without_a_tuning_of_its_own_says_so(cli, tmp_path):
    assert cli(*TUNE, "--out", tmp_path).code == 0
    tuned = (*TASK, *TINY, "--tuned", tmp_path, "--dry-run", "--out", tmp_path / "new")
    outcome = cli("run", "--model", "transformer,baseconv,zero", *tuned)
    assert outcome.code == 0
    assert "baseconv on least-squares: not tuned, as no tuning is of baseconv" in outcome.err
    assert "zero on" not in outcome.err
    other = cli("run", *MODEL, *tuned, "--task-args", "noise=0.5", "--dtype", "float64")
    assert other.code == 2
    assert "is of noise=0.0, not 0.5 and dtype=float32, not float64" in other.err
    untrained = cli("run", "--model", "zero", *tuned)
    assert "nothing is trained: --tuned does not apply" in untrained.err


def test_options_that_trials_do_not_have_are_told(cli, tmp_path):
    outcome = cli(*TUNE, "--shift", "quadrants", "--out", tmp_path, "--dry-run")
    assert outcome.code == 0
    assert "ignored: --seeds, --shift; trials have their own seeds" in outcome.err


@pytest.mark.parametrize(("ranked", "is_told"), [("loss", True), (f"{GRADE}plot", False)])
def test_a_grader_is_ignored_unless_a_grade_ranks(monkeypatch, capsys, ranked, is_told):
    monkeypatch.setattr(tune, "options_given", lambda context: {"grader": "--grader"})
    task = SimpleNamespace(primary=SimpleNamespace(metric=ranked))
    tune._say_unused(None, [SimpleNamespace(task=task)])
    assert ("ignored: --grader;" in capsys.readouterr().err) is is_told


def test_an_unknown_executor_is_refused_by_a_dry_run_too(cli, tmp_path):
    outcome = cli(*TUNE, "--executor", "nosuch", "--out", tmp_path, "--dry-run")
    assert (outcome.code, outcome.out) == (2, "")
    assert "unknown executor 'nosuch'" in outcome.err


@pytest.mark.parametrize("verb", ["tune", "run", "sweep"])
def test_debugging_shows_the_traceback_of_a_failed_training(cli, tmp_path, monkeypatch, verb):
    def fail(self, *args):
        raise RuntimeError("a bug in a mixer")

    monkeypatch.setattr(Training, "update", fail)
    (tmp_path / "one.toml").write_text(
        '[[grid]]\nmodel = "transformer"\ntask = "least-squares"\nrecipe = "smoke"\nseeds = 1\n'
    )
    words = {
        "tune": TUNE,
        "run": ("run", *MODEL, *TASK, *TINY, "--tune", "--trials", "1"),
        "sweep": ("sweep", tmp_path / "one.toml"),
    }[verb]
    plain = cli(*words, "--out", tmp_path / "a")
    assert plain.code != 0
    assert "a bug in a mixer" in plain.err
    assert "Traceback" not in plain.err
    monkeypatch.setenv("ICLBENCH_DEBUG", "1")
    shown = cli(*words, "--out", tmp_path / "b")
    assert "Traceback" in shown.err
