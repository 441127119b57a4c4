"""Verifying graded records: a paid grader's recorded answers are read again."""

from __future__ import annotations

import json

import pytest
from storytelling import (
    LengthConfig,
    Paid,
    read_lines,
    tell,
)

from iclbench import (
    Completion,
    RecordError,
    RecordStore,
    verify,
)
from iclbench.api.record import GradingCost
from iclbench.runs.grading import RecordedGrader
from iclbench.runs.measure import measure
from iclbench.runs.objects import Objects
from iclbench.runs.recorded_endings import same_endings
from iclbench.runs.store import read_record

pytestmark = pytest.mark.usefixtures("storytelling")


@pytest.fixture
def paid(tmp_path):
    record = tell(tmp_path, grader="paid")
    return RecordStore(tmp_path).path(record.spec)


def reseal(path, change, **report):
    """Give the record other answers, with all digests consistent."""
    record = read_record(path)
    lines = read_lines(path.parents[1] / record.grader.answers.name)
    data = "".join(json.dumps(change(line)) + "\n" for line in lines).encode()
    answers = Objects.beside(path).write(data, "jsonl")
    grader = record.grader.model_copy(update={"answers": answers, **report})
    path.write_text(record.model_copy(update={"grader": grader}).sealed().model_dump_json())


def test_verify_asks_a_paid_grader_nothing(paid):
    before = Paid.asked
    checks = {check.name: check for check in verify(paid)}
    assert Paid.asked == before
    assert checks["grade_length mean"].holds
    written = checks["graded endings, written again"]
    assert (written.recorded, written.measured, written.holds) == (4, 4, True)


def test_a_graded_record_from_elsewhere_is_allowed_what_rounding_does(paid, monkeypatch):
    """Grades are not given again with other rounding."""

    def scaled(measured, factor):
        values = {
            name: array if name.startswith("grade_") else factor * array
            for name, array in measured.values.items()
        }
        return measured._replace(values=values)

    def elsewhere(*args, **kwargs):
        return scaled(measure(*args, **kwargs), 1.01)

    monkeypatch.setattr("iclbench.runs.verify.measure", elsewhere)
    for factors, holds in (((1.01, 1.01), False), ((0.97, 0.99, 1.01, 1.03), True)):
        monkeypatch.setattr(
            "iclbench.runs.verify.measure_rounded",
            lambda *args, factors=factors: [scaled(measure(*args), f) for f in factors],
        )
        assert all(check.holds for check in verify(paid)) == holds


def test_answers_that_give_other_grades_are_noticed(paid):
    other = {"answer": {"characters": 9}, "scores": {"length": 9.0}}
    reseal(paid, lambda line: {**line, **other})
    assert "grade_length mean" in {check.name for check in verify(paid) if not check.holds}


def test_grades_of_other_endings_are_noticed(paid):
    reseal(paid, lambda line: {**line, "ending": line["ending"] + "!"})
    failing = [check for check in verify(paid) if not check.holds]
    assert [(check.name, check.measured) for check in failing] == [
        ("graded endings, written again", 0)
    ]


@pytest.mark.parametrize(
    "change",
    [{"ending": "Buy at evil example dot com"}, {"beginning": ""}, {"scores": {"length": 10**400}},
     {"scores": {}}, {"scores": 1}, {"more": 1}],
)  # fmt: skip
def test_other_endings_or_scores_of_a_free_grader_are_noticed(tmp_path, change):
    record = tell(tmp_path, grader="length")
    path = RecordStore(tmp_path).path(record.spec)
    assert all(check.holds for check in verify(path))
    reseal(path, lambda line: {**line, **change})
    failing = [check for check in verify(path) if not check.holds]
    assert [(check.name, check.measured) for check in failing] == [
        ("graded endings, written again", 0)
    ]


def test_lines_of_endings_that_are_none_or_too_few_are_not_the_same():
    line = b'{"beginning": "a", "ending": "b", "scores": {"x": null, "y": 1.0}, "answer": {}}\n'
    assert same_endings(line * 2, line * 2) == (2, 2)
    assert same_endings(line, line * 2) == (2, 1)
    assert same_endings(line * 2, line) == (2, 1)
    for damaged in (b"{\n", b"[]\n", line.replace(b"null", b"0.0"), line.replace(b"1.0", b'"1"')):
        assert same_endings(damaged, line) == (1, 0)
    assert same_endings(line.replace(b"1.0", b"1.0000001"), line) == (1, 1)


def test_damaged_answers_are_an_error(paid):
    record = read_record(paid)
    file = paid.parents[1] / record.grader.answers.name
    whole = file.read_bytes()
    file.write_bytes(whole + b"\n")
    with pytest.raises(RecordError, match="SHA-256"):
        verify(paid)
    file.write_bytes(whole)
    reseal(paid, lambda line: {"scores": line["scores"]})
    with pytest.raises(RecordError, match="raw answers is damaged"):
        verify(paid)
    with pytest.raises(RecordError, match="fewer"):
        RecordedGrader(Paid(LengthConfig()), b"").grade([Completion("a", "b")], None)


@pytest.mark.parametrize("grader", ["paid", "length"])
@pytest.mark.parametrize(
    "change",
    [{"prompt": "0" * 64}, {"completions": 10**6}, {"failures": 3}, {"reasons": {"no reason": 1}}],
)
def test_a_report_that_does_not_fit_its_answers_is_noticed(tmp_path, grader, change):
    record = tell(tmp_path, grader=grader)
    path = RecordStore(tmp_path).path(record.spec)
    reseal(path, lambda line: line, **change)
    failing = [check.name for check in verify(path) if not check.holds]
    # Why a service gave no grade is what it said.
    known = change if grader == "length" else change.keys() - {"reasons"}
    assert failing == [f"grading {name}" for name in known]


@pytest.mark.parametrize("field", ["model", "cost"])
def test_a_free_grader_has_no_model_and_no_cost_but_its_own(tmp_path, field):
    record = tell(tmp_path, grader="length")
    path = RecordStore(tmp_path).path(record.spec)
    cost = GradingCost(requests=1, prompt_tokens=1, answer_tokens=1, usd=None, paid_usd=None,
                       estimated_usd=None)  # fmt: skip
    reseal(path, lambda line: line, **{field: {"model": "human", "cost": cost}[field]})
    failing = [check.name for check in verify(path) if not check.holds]
    assert failing == [f"grading {field}"]


@pytest.mark.parametrize("change", [{"scores": {"length": 1e9}}, {"x": 1}])
def test_scores_are_those_of_a_paid_grader_s_answers(paid, change):
    reseal(paid, lambda line: {**line, **change})
    with pytest.raises(RecordError, match="raw answers is damaged"):
        verify(paid)


def test_a_negative_number_of_failures_is_no_report(paid):
    reseal(paid, lambda line: line, failures=-7)
    with pytest.raises(RecordError, match="failures"):
        verify(paid)
