"""The answers of studies: their numbers are those of records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iclbench import RecordStore, UsageError, run
from iclbench.api.config import parse_config
from iclbench.leaderboards.site.gallery import _answer
from iclbench.leaderboards.study_notes import StudyNotes, read_notes
from iclbench.runs.store import read_record

PUBLISHED = Path(__file__).parents[2] / "leaderboards"


def notes(answer, **numbers) -> StudyNotes:
    content = {"records": "small", "question": "Why?", "source": "nobody", "shows": "nothing",
               "link": "https://example.org/", "answer": answer, "numbers": numbers}  # fmt: skip
    return parse_config(StudyNotes, content, "notes")


def mean_of(model):
    return {"metric": "squared_error", "statistic": "mean", "where": {"model": model}}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return run(model="ridge", task="least-squares", eval_prompts=32, dtype="float64", out=out)


def test_an_answer_has_the_numbers_of_the_records(record):
    answer = notes("Least squares has {error}.", error=mean_of("ridge")).answered([record])
    mean = record.metrics["squared_error"].mean
    written = re.fullmatch(r"Least squares has (\S+)\.", answer)[1]
    assert float(written.replace("−", "-")) == pytest.approx(mean, rel=0.01)
    assert "-" not in answer


def test_an_answer_without_all_of_its_records_is_not_given(record):
    both = notes("{one} and {two}", one=mean_of("ridge"), two=mean_of("zero"))
    assert both.answered([record]) == ""


def test_an_answer_in_words_needs_no_record():
    assert notes("It does not.").answered([]) == "It does not."


@pytest.mark.parametrize(
    ("answer", "numbers"), [("{one}", {}), ("none", {"one": mean_of("ridge")})]
)
def test_an_answer_and_its_numbers_must_agree(answer, numbers):
    with pytest.raises(UsageError, match="disagree on one"):
        notes(answer, **numbers)


def test_a_number_of_several_records_is_refused(record):
    with pytest.raises(UsageError, match=r"studies\.toml: 2 records have"):
        notes("{one}", one=mean_of("ridge")).answered([record, record])


def test_an_answer_that_a_further_record_makes_ambiguous_is_left_out(record):
    refused = []
    one = notes("{one}", one=mean_of("ridge"))
    assert _answer(one, [record], refused.append) != ""
    assert _answer(one, [record, record], refused.append) == ""
    (line,) = refused
    assert line.startswith("the answer of ")
    assert "2 records have" in line


def test_published_answers_have_their_records_and_no_measured_number_is_written_by_hand():
    for name, one in read_notes(PUBLISHED).items():
        records = map(read_record, RecordStore(PUBLISHED / "studies" / name).paths())
        assert bool(one.answered(list(records))) == bool(one.answer), name
        assert not re.search(r"\d\.\d|\de-?\d", one.answer), name
