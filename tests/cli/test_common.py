"""Helpers of several verbs: boards as a terminal shows them."""

from __future__ import annotations

import sys

import pytest

from iclbench import leaderboard, run
from iclbench.cli.common import print_boards


@pytest.fixture
def boards(tmp_path):
    for model in ("zero", "least-squares-qr"):
        run(model=model, task="least-squares", eval_prompts=16, out=tmp_path)
    return leaderboard(tmp_path)


def test_boards_fit_the_terminal(boards, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    print_boards(boards)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 70
    assert any("digits" in line and "1% worst" in line for line in lines)
    assert not any("parameters" in line for line in lines)


def test_elsewhere_they_have_every_column(boards, capsys):
    print_boards(boards, commands=True)
    text = capsys.readouterr().out
    assert "parameters" in text
    assert "    iclbench run --model zero" in text
    assert text.rstrip().endswith("heavy tail.")


def test_without_boards_nothing_is_printed(capsys):
    print_boards([])
    assert capsys.readouterr().out == ""
