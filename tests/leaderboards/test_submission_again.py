"""Submitting a record more than once: in one command, or after it was published."""

from __future__ import annotations

import pytest
from forging import reseal

from iclbench import run
from iclbench.runs.store import read_record


@pytest.fixture
def path(tmp_path):
    return run(model="baseconv", task="least-squares", task_args={"dim": 2, "examples": 4},
               recipe="smoke", seeds=2, eval_prompts=32, out=tmp_path / "results").path  # fmt: skip


def test_a_record_is_counted_once_however_often_it_is_named(cli, path, tmp_path):
    outcome = cli("submit", path, path, path.parent / ".." / path.parent.name / path.name,
                  "--to", tmp_path / "boards", "--check")  # fmt: skip
    assert outcome.code == 0
    assert outcome.out.startswith("## 1 record, all")


def test_a_record_that_got_answers_is_known_again(cli, path, tmp_path):
    """Publishing adds answers to a record that was made without, which its author submits again."""
    path = reseal(path, lambda content: content["evaluations"]["main"].update(answers=None))
    boards = tmp_path / "boards"
    assert cli("submit", path, "--to", boards).code == 0
    published = boards / "records" / path.parent.name / path.name
    assert read_record(published).main.answers is not None
    again = cli("submit", path, "--to", boards)
    assert again.code == 0
    assert "already published" in again.err
