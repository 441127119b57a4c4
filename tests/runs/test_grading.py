"""Grading: what records keep of it, failed grades, graders that break their promise."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest
from forging import reseal
from storytelling import (
    Length,
    LengthConfig,
    read_lines,
    tell,
)

from iclbench import (
    Completion,
    RecordError,
    RecordStore,
    RunError,
    leaderboard,
    verify,
)
from iclbench.display.boards import board_table
from iclbench.display.formats import as_markdown
from iclbench.runs.grading import LARGEST_ANSWER, Grading, RecordedGrader
from iclbench.runs.statistics import graded, summarize
from iclbench.runs.store import read_record

pytestmark = pytest.mark.usefixtures("storytelling")


def test_a_record_names_the_grader_and_keeps_every_ending(tmp_path):
    record = tell(tmp_path, grader_args={"factor": 2})
    assert record.metrics["grade_length"].n == 4
    assert record.metrics["squared_error"].n == 16
    report = record.grader
    assert (report.name, report.model, report.completions, report.failures) == (
        "length", "a ruler", 4, 0,
    )  # fmt: skip
    path = RecordStore(tmp_path).path(record.spec)
    lines = read_lines(tmp_path / report.answers.name)
    assert [line["beginning"] for line in lines] == [f"Story {i}." for i in range(4)]
    grades = [line["scores"]["length"] for line in lines]
    assert grades == [2.0 * len(line["ending"]) for line in lines]
    assert record.metrics["grade_length"].mean == pytest.approx(np.mean(grades))
    assert "test-plugin" in {plugin.name for plugin in record.plugins}
    assert read_record(path) == record
    assert all(check.holds for check in verify(path))


def test_the_files_of_a_record_that_is_replaced_go(tmp_path):
    first = tell(tmp_path, grader_args={"fail": 1})
    second = tell(tmp_path, grader_args={"fail": 1}, force=True)
    assert first.grader.answers == second.grader.answers
    (tmp_path / "objects" / "01").mkdir(exist_ok=True)
    old = tmp_path / "objects" / "01" / f"01{'2' * 62}.jsonl"
    old.write_text("old")
    os.utime(old, (0, 0))
    named = {"sha256": old.stem, "format": "jsonl", "shape": None}
    reseal(RecordStore(tmp_path).path(first.spec), lambda c: c["grader"].update(answers=named))
    tell(tmp_path, grader_args={"fail": 1}, force=True)
    (kept,) = tmp_path.rglob("*.jsonl")
    assert kept == tmp_path / first.grader.answers.name


def test_every_seed_is_graded(tmp_path):
    record = tell(tmp_path, model="transformer", model_args={"layers": 1, "width": 4},
                  recipe_args={"steps": 2, "batch": 2})  # fmt: skip
    assert record.grader.completions == 8
    means = [seed["grade_length"].mean for seed in record.main.seeds]
    assert record.metrics["grade_length"].mean == pytest.approx(np.mean(means))
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_grade_that_failed_is_left_out_and_counted(tmp_path, cli):
    whole = tell(tmp_path)
    record = tell(tmp_path, grader_args={"fail": 2})
    assert (record.grader.failures, record.grader.completions) == (1, 4)
    grade = record.metrics["grade_length"]
    assert grade.n == 3
    assert grade.mean is not None
    assert whole.metrics["grade_length"].n == 4
    path = RecordStore(tmp_path).path(record.spec)
    assert all(check.holds for check in verify(path))
    shown = cli("show", path).out
    assert "graded by length · a ruler · 1 of 4 endings failed" in shown


def test_statistics_of_grades_leave_out_prompts_that_failed_for_a_seed():
    values = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    assert summarize(graded("grade_plot", values)).mean == 2.5
    assert summarize(graded("error", values)).mean is None
    nothing = summarize(graded("grade_plot", np.full((1, 3), np.nan)))
    assert (nothing.n, nothing.mean, nothing.low) == (0, None, None)


def test_a_grader_that_failed_everywhere_leaves_no_number(tmp_path):
    class Never(Length):
        name = "length"

        def grade(self, completions, folder):
            return {"length": [math.nan] * len(completions)}

    grading = Grading(Never(LengthConfig()))
    assert all(map(math.isnan, grading.grade([Completion("a", "b")], None)["length"]))
    assert grading.report().failures == 1


def test_a_task_that_gives_its_grader_nothing_is_an_error(tmp_path):
    with pytest.raises(RunError, match="gave grader length nothing to grade"):
        tell(tmp_path, task="forgetful")


BROKEN = {
    "none": ({}, "gave no scores"),
    "too few": ({"plot": [1.0]}, "1 scores plot for 2 completions"),
    "infinite": ({"plot": [1.0, math.inf]}, "plot is infinite"),
    "name": ({"The Plot": [1.0, 2.0]}, "'The Plot' is not a valid name"),
}


@pytest.mark.parametrize(("scores", "message"), BROKEN.values(), ids=BROKEN)
def test_a_grader_that_breaks_its_promise_is_caught(scores, message):
    class Odd(Length):
        def grade(self, completions, folder):
            return scores

    with pytest.raises(RunError, match=message):
        Grading(Odd(LengthConfig())).grade([Completion("a", "b")] * 2, None)


def test_boards_by_grade_hold_one_grader_each(tmp_path):
    tell(tmp_path, task="ranked")
    tell(tmp_path, task="ranked", model="zero", grader_args={"fail": None})
    tell(tmp_path, task="ranked", model="zero", grader_args={"factor": 2})
    sizes = sorted(len(board.records) for board in leaderboard(tmp_path))
    assert sizes == [1, 2]
    assert all(
        "graded by length a ruler" in as_markdown(board_table(board))
        for board in leaderboard(tmp_path)
    )


def test_a_failed_grade_is_left_out_of_a_comparison(tmp_path):
    tell(tmp_path, task="ranked", grader_args={"fail": 1})
    tell(tmp_path, task="ranked", model="zero", grader_args={"fail": 1})
    (board,) = leaderboard(tmp_path)
    assert all(np.isfinite(row.ranked).all() for row in board.rows)
    assert None not in {row.statistics.mean for row in board.rows}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"text": "x" * LARGEST_ANSWER}, "a raw answer has .* bytes of JSON"),
        ({"text": b"x"}, "a raw answer is not JSON"),
        ({"number": math.nan}, "a raw answer is not JSON"),
    ],
    ids=["large", "bytes", "not a number"],
)
def test_a_raw_answer_that_a_record_cannot_keep_is_an_error(monkeypatch, raw, message):
    monkeypatch.setattr(Length, "raw", lambda self, completion: raw)
    with pytest.raises(RunError, match=f"grader length: {message}"):
        Grading(Length(LengthConfig())).grade([Completion("a", "b")], None)


LINE = {"beginning": "a", "ending": "b", "scores": {"length": 1.0}, "answer": {}}


@pytest.mark.parametrize(
    "lines",
    [
        "[" * 100_000,
        json.dumps({**LINE, "beginning": 1}),
        json.dumps({key: value for key, value in LINE.items() if key != "ending"}),
        json.dumps({**LINE, "scores": ["length"]}),
        json.dumps({**LINE, "scores": {"../x": 1.0}}),
        json.dumps(LINE) + "\n" + json.dumps({**LINE, "scores": {"width": 1.0}}),
    ],
    ids=["nested", "number", "missing", "list", "odd name", "other names"],
)
def test_damaged_answers_of_a_record_are_refused(monkeypatch, lines):
    monkeypatch.setattr(Length, "read", lambda self, raw: {"length": 1.0})
    RecordedGrader(Length(LengthConfig()), json.dumps(LINE).encode())
    with pytest.raises(RecordError, match="the file of raw answers is damaged"):
        RecordedGrader(Length(LengthConfig()), lines.encode())
