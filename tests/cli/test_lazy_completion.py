"""Shell completion: verbs, options, and the names of entries."""

from __future__ import annotations

import pytest

from iclbench.cli.lazy import VERBS


@pytest.fixture
def complete(cli, monkeypatch):
    """What bash offers for an unfinished command line."""

    def offered(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_ICLBENCH_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        outcome = cli()
        assert outcome.code == 0
        return outcome.out.split()

    return offered


def test_verbs_and_options_are_completed(complete):
    assert complete("iclbench l") == ["ls", "leaderboard"]
    assert set(VERBS) <= set(complete("iclbench "))
    assert "--model" in complete("iclbench run --mo")
    assert complete("iclbench leaderboard sh") == ["show"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("iclbench run --model trans", "transformer"),
        ("iclbench run --model zero,trans", "zero,transformer"),
        ("iclbench run --task least-squares-pre", "least-squares-prefixes"),
        ("iclbench run --suite pre", "precision"),
        ("iclbench describe calib", "calibration"),
        ("iclbench ls com", "commands"),
        ("iclbench leaderboard suite co", "core"),
    ],
)
def test_names_are_completed(complete, line, name):
    assert complete(line) == [name]


def test_a_script_for_a_shell_is_printed(cli, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    outcome = cli("--help")
    assert "--install-completion" in outcome.out
