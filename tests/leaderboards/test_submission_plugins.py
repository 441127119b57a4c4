"""Submitting records of plugins that end the process: they are refused, and stop no other."""

from __future__ import annotations

import pytest

from iclbench import run
from iclbench.leaderboards import submission
from iclbench_solvers.simple import Averaging

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32}


@pytest.fixture
def results(tmp_path):
    for model in ("averaging", "zero"):
        run(model, **TINY, out=tmp_path / "results")
    return tmp_path / "results"


def leave(*_):
    raise SystemExit(0)


def test_a_plugin_that_exits_has_its_own_record_refused(cli, results, tmp_path, monkeypatch):
    monkeypatch.setattr(Averaging, "build", leave)
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "SystemExit: 0" in outcome.err
    assert [path.name[:5] for path in (tmp_path / "boards").rglob("*/*/*.json")] == ["zero-"]


def test_a_plugin_that_exits_after_its_record_held_stops_no_other(
    cli, results, tmp_path, monkeypatch
):
    publish = submission.publish

    def published(one, store):
        return leave() if one.record.spec.model == "averaging" else publish(one, store)

    monkeypatch.setattr(submission, "publish", published)
    outcome = cli("submit", results, "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert "SystemExit: 0" in outcome.err
    assert [path.name[:5] for path in (tmp_path / "boards").rglob("*/*/*.json")] == ["zero-"]


def test_a_terminal_shows_a_refusal_once(cli, results, tmp_path, monkeypatch):
    monkeypatch.setattr(Averaging, "build", leave)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    outcome = cli("submit", results, "--check", "--to", tmp_path / "boards")
    assert outcome.code == 2
    assert (outcome.out.count("SystemExit: 0"), outcome.err.count("SystemExit: 0")) == (0, 1)
