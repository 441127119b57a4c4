"""Records of language models: asked once, verified from what they answered, and forged in vain."""

from __future__ import annotations

import json

import pytest
from asked_models import once, parrot

from iclbench import (
    Config,
    ConformanceError,
    RecordError,
    RecordStore,
    UsageError,
    check_plugin,
    evaluate_shifts,
    run,
    verify,
)
from iclbench.runs import asked_answers
from iclbench.runs.checks import check_architecture
from iclbench.runs.facts import claims
from iclbench.runs.load import load_task
from iclbench.runs.objects import Objects
from iclbench.runs.recorded_answers import read_answers
from iclbench.runs.store import read_record

SPEC = {"model": "parrot", "task": "least-squares", "task_args": {"dim": 2, "examples": 3},
        "eval_prompts": 20, "device": "cpu"}  # fmt: skip


@pytest.fixture
def path(provide, tmp_path):
    provide("model", "parrot", once())
    record = run(**SPEC, out=tmp_path)
    return RecordStore(tmp_path).path(record.spec)


def with_lines(path, change):
    """Replace the answers of the record in `path` by changed lines, as a forger would."""
    record, objects = read_record(path), Objects.beside(path)
    lines = [json.loads(line) for line in objects.read(record.answers).decode().splitlines()]
    text = "".join(json.dumps(line) + "\n" for line in change(lines))
    answers = objects.write(text.encode(), "jsonl")
    RecordStore(path.parent.parent).write(record.model_copy(update={"answers": answers}).sealed())


def test_a_record_holds_every_question_with_its_answer(path):
    record = read_record(path)
    assert record.spec.origin == "asked"
    assert (record.parameters, record.operations, record.training) == (0, None, None)
    name, answers = read_answers(record, Objects.beside(path))
    assert name == "a parrot"
    assert len(answers) == 20
    assert record.main.answers is not None
    first = float(next(iter(answers.values())).rstrip("]"))
    assert record.main.answers[0][0][0] == pytest.approx(first, rel=1e-6)


def test_a_record_verifies_and_asks_nothing(path):
    checks = verify(path, "cpu")  # the parrot fails when it is asked by a second call
    assert all(check.holds for check in checks)
    assert claims(read_record(path), Objects.beside(path))["answers"] == "those of a parrot"


def better(lines):
    return [*lines[:3], {**lines[3], "answer": "0.0]"}, *lines[4:]]


@pytest.mark.parametrize(
    "forgery",
    [
        better,
        lambda lines: [*lines, {"question": "What is the answer to everything?", "answer": "42"}],
        lambda lines: [lines[0], *lines[:0:-1]],
    ],
    ids=["another answer", "a question of no prompt", "another order"],
)
def test_forged_answers_are_noticed(path, forgery):
    with_lines(path, forgery)
    assert not all(check.holds for check in verify(path, "cpu"))


@pytest.mark.parametrize(
    ("forgery", "message"),
    [
        (lambda lines: lines[:-1], "no answer to one of its questions"),
        (lambda lines: [*lines, lines[-1]], "a question and an answer each"),
        (lambda lines: [*lines, {"question": 1, "answer": "1"}], "a question and an answer each"),
        (lambda lines: [*lines, ["question"]], "a question and an answer each"),
        (lambda lines: lines[1:], "a question and an answer each"),
        (lambda lines: [{**lines[0], "seed": "1"}, *lines[1:]], "a question and an answer each"),
        (lambda lines: [], "a question and an answer each"),
    ],
    ids=["missing", "twice", "no text", "a list", "no model", "more", "empty"],
)
def test_damaged_answers_are_one_line(path, forgery, message):
    with_lines(path, forgery)
    with pytest.raises(RecordError, match=message):
        verify(path, "cpu")


def test_an_answer_without_a_number_counts_as_the_model_says(provide, tmp_path):
    provide("model", "parrot", parrot(ask=lambda self, q, c, d: ["I can't say."] * len(q)))
    record = run(**SPEC, out=tmp_path)
    zero = run(**{**SPEC, "model": "zero"}, out=tmp_path)
    assert record.metrics["squared_error"].mean == zero.metrics["squared_error"].mean


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"shift": ("all",)}, "--shift does not apply"),
        ({"metrics": ("iterates",)}, "--metrics does not apply"),
        ({"weights": "w.safetensors"}, "--weights does not apply"),
    ],
)
def test_what_would_ask_more_is_refused(provide, tmp_path, more, message):
    provide("model", "parrot", parrot())
    with pytest.raises(UsageError, match=message):
        run(**SPEC, **more, out=tmp_path)


def test_a_record_is_never_asked_for_shifts(path, cli):
    """Its command may come from anyone, and may name what is asked."""
    before = path.read_bytes()
    with pytest.raises(UsageError, match="asked in text: --shift does not apply"):
        evaluate_shifts(path, ["quadrants"], "cpu")
    outcome = cli("run", "--weights", str(path), "--shift", "quadrants")
    assert outcome.code == 2
    assert "--shift does not apply" in outcome.err
    assert path.read_bytes() == before


def test_what_no_record_would_hold_is_refused_before_asking(provide, tmp_path, monkeypatch):
    monkeypatch.setattr(asked_answers, "MOST_ANSWER_BYTES", 10_000)
    asked = parrot()
    provide("model", "parrot", asked)
    with pytest.raises(UsageError, match=r"20 questions would be about .* evaluate fewer prompts"):
        run(**SPEC, out=tmp_path)
    assert asked.asked == []


def test_what_is_missing_is_found_before_anything_is_asked(provide, tmp_path):
    def prepare(self, config):
        raise UsageError("parrot: no seeds to eat")

    asked = parrot(prepare=prepare)
    provide("model", "parrot", asked)
    with pytest.raises(UsageError, match="no seeds to eat"):
        run(**SPEC, out=tmp_path)
    assert asked.asked == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"questions": lambda self, p, s, c: ["the same"] * len(p.x)}, "one per prompt"),
        (
            {"questions": lambda self, p, s, c: [f"{i}" for i in range(len(p.x))]},
            "depends on the other prompts",
        ),
        ({"read": lambda self, a, s, c: []}, "0 numbers, not 1"),
        ({"read": lambda self, a, s, c: [float("inf")]}, "not finite"),
        ({"read": lambda self, a, s, c: [1e6 if a == "nan" else 0.0]}, "'nan' is read as"),
    ],
)
def test_conformance_asks_nothing_and_finds_wrong_questions(changes, message):
    asked = parrot(ask=None, **changes)
    task = load_task("least-squares", dim=2, examples=3)
    if message is None:
        check_architecture(asked(), task, Config())
        return
    with pytest.raises(ConformanceError, match=message):
        check_architecture(asked(), task, Config())


def test_the_shipped_language_model_conforms():
    outcomes = {o.case.label: o for o in check_plugin("language-model")}
    assert outcomes["model language-model: module"].status == "ok"
    assert "would query a language model" in outcomes["model language-model: run"].text
    assert not [o for o in outcomes.values() if o.status == "failed"]
