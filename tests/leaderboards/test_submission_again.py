"""Submitting a record more than once: in one command, or after it was published."""

from __future__ import annotations

import shutil

import pytest
from forging import reseal

from iclbench import run
from iclbench.leaderboards import submission
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


@pytest.mark.parametrize("lacking", ["answers", "state sizes"])
def test_a_record_with_additions_is_known_again(cli, path, tmp_path, lacking):
    """Publishing adds what an earlier version did not record, and its author submits it again."""

    def strip(content):
        if lacking == "answers":
            content["evaluations"]["main"].update(answers=None)
        else:
            content.update(state_sizes=None)

    path = reseal(path, strip)
    boards = tmp_path / "boards"
    assert cli("submit", path, "--to", boards).code == 0
    published = read_record(boards / "records" / path.parent.name / path.name)
    assert published.main.answers is not None
    assert published.state_sizes is not None
    again = cli("submit", path, "--to", boards)
    assert again.code == 0
    assert "already published" in again.err


def test_a_row_that_was_retrained_is_known_again(cli, path, tmp_path):
    """Its published record has the time and machine of the repetition."""
    boards = tmp_path / "boards"
    assert cli("submit", path, "--to", boards).code == 0
    published = boards / "records" / path.parent.name / path.name
    assert cli("verify", published, "--retrain", "--write").code == 0
    proof = read_record(published).proof
    assert (proof.kind, proof.same_bits) == ("retrained", True)
    again = cli("submit", path, "--to", boards)
    assert again.code == 0
    assert "already published" in again.err
    # It can still be evaluated on held-out prompts; a copy of it elsewhere can't be submitted.
    assert cli("submit", "--held-out", published, "--to", boards).code == 0
    assert published.with_suffix(".heldout.json").is_file()
    shutil.copytree(published.parents[1], tmp_path / "copy")
    copied = tmp_path / "copy" / path.parent.name / path.name
    refused = cli("submit", copied, "--to", boards)
    assert refused.code != 0
    assert "its proof says retrained" in refused.err


@pytest.mark.parametrize("row", [{"model": "zero"}, {"model": "lsa", "weights": "ridge-gd"}])
def test_what_follows_from_the_run_is_published_already(cli, tmp_path, row):
    """Everybody's suite runs the solvers that it scores by."""
    boards, request = tmp_path / "boards", {**row, "task": "ridge", "eval_prompts": 32}
    first = run(**request, out=tmp_path / "mine").path
    assert cli("submit", first, "--to", boards).code == 0
    published = boards / "records" / first.parent.name / first.name
    before = published.read_bytes()
    other = run(**request, out=tmp_path / "yours").path
    # It took another time.
    assert read_record(other).digest != read_record(first).digest
    again = cli("submit", other, "--to", boards)
    assert again.code == 0
    assert "already published" in again.err
    assert published.read_bytes() == before


def test_a_record_that_cannot_be_copied_stops_no_other(cli, path, tmp_path, monkeypatch):
    other = run(model="zero", task="ridge", eval_prompts=32, out=tmp_path / "results").path
    copied = submission.publish

    def publish(one, store):
        if one.record.spec.task == "least-squares":
            raise OSError("the disk is full")
        return copied(one, store)

    monkeypatch.setattr(submission, "publish", publish)
    outcome = cli("submit", path, other, "--to", tmp_path / "boards")
    assert (outcome.code, "the disk is full" in outcome.err) == (2, True)
    assert (tmp_path / "boards" / "records" / "ridge" / other.name).exists()


@pytest.mark.parametrize("row", [{"model": "zero"}, {"model": "lsa", "weights": "ridge-gd"}])
def test_a_row_that_differs_in_further_metrics_alone_is_refused(cli, tmp_path, row):
    """Its row on the board could not be told from the published one."""
    request, boards = {**row, "task": "ridge", "eval_prompts": 32}, tmp_path / "boards"
    first, second = (
        run(**request, metrics=metrics, out=tmp_path / "results").path
        for metrics in ((), ("alignment",))
    )
    together = cli("submit", first, second, "--to", boards, "--check")
    assert together.code == 2
    assert together.out.startswith("## 1 record,")
    assert cli("submit", first, "--to", boards).code == 0
    again = cli("submit", second, "--to", boards)
    assert again.code == 2
    published = boards / "records" / first.parent.name / first.name
    assert f"differs from {published} only in its metrics" in again.out + again.err
    # Other arguments make another row.
    other = run("ridge", "ridge", eval_prompts=32, metrics=("alignment",), out=tmp_path / "more")
    assert cli("submit", other.path, "--to", boards).code == 0


def test_a_published_record_gets_the_held_out_evaluation_that_it_lacks(cli, path, tmp_path):
    """An evaluation that was cut off is made up for; nothing else is looked at again."""
    boards = tmp_path / "boards"
    run(model="zero", task="least-squares", eval_prompts=16, out=path.parents[1])
    assert cli("submit", path.parents[1], "--to", boards).code == 0
    records = boards / "records"
    assert not list(records.glob("*/*.heldout.json"))
    late = cli("submit", "--held-out", records, "--to", boards)
    assert late.code == 0, late.err
    assert late.out.startswith("## 1 record, all")
    (held_out,) = records.glob("*/*.heldout.json")
    assert held_out.name == f"{path.stem}.heldout.json"
    again = cli("submit", "--held-out", records, "--to", boards)
    assert (again.code, again.out) == (0, "no published record lacks a held-out evaluation\n")
