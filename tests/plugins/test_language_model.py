"""The model language-model: its questions, what it reads in answers, and what it keeps."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import (
    LocalLanguageModel,
    Regression,
    Text,
    load_task,
    run,
)
from iclbench_language_model import model as language_model
from iclbench_language_model.answers import AnswerFile
from iclbench_language_model.model import LanguageModel, LanguageModelConfig

TASK = load_task("least-squares", dim=2, examples=2)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ICLBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def completions(monkeypatch, tmp_path):
    """A model's file, and the questions of a model that answers `0.5` to each."""
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"weights")
    asked: list[str] = []

    def complete(self, text, most_tokens):
        asked.append(text)
        return " 0.5\n"

    monkeypatch.setattr(LocalLanguageModel, "complete", complete)
    # The packages that read a model are optional.
    monkeypatch.setattr(LocalLanguageModel, "require", lambda self: None)
    return SimpleNamespace(config=LanguageModelConfig(path=str(file)), asked=asked)


def test_a_question_shows_inputs_and_outputs_and_ends_at_the_query():
    x = torch.tensor([[[0.123, -1.0], [2.0, 0.0]]], dtype=torch.float64)
    y = torch.tensor([[[-0.001], [1.456]]], dtype=torch.float64)
    query = torch.tensor([[[10.0, -0.5]]], dtype=torch.float64)
    prompt = Regression(torch.zeros(1, 1, 1), x, y, query)
    (question,) = LanguageModel().questions(prompt, TASK.signature, LanguageModelConfig())
    assert question == (
        "Input: 0.12, -1.00\nOutput: 0.00\n\nInput: 2.00, 0.00\nOutput: 1.46\n\n"
        "Input: 10.00, -0.50\nOutput:"
    )
    (rounded,) = LanguageModel().questions(prompt, TASK.signature, LanguageModelConfig(decimals=0))
    assert rounded == "Input: 0, -1\nOutput: 0\n\nInput: 2, 0\nOutput: 1\n\nInput: 10, 0\nOutput:"


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (" 0.09\n\nInput", 0.09),
        ("−1.5", -1.5),
        ("+3", 3.0),
        ("about .25, I think", 0.25),
        ("1e-3", 1e-3),
        ("2.", 2.0),
        ("", 0.0),
        ("\n7", 7.0),
        ("none\n7", 0.0),
        ("1e999", 0.0),
        ("nan", 0.0),
    ],
)
def test_the_first_number_of_the_first_line_is_the_prediction(answer, number):
    assert LanguageModel().read(answer, TASK.signature, LanguageModelConfig()) == [number]


@given(st.text(max_size=60))
def test_any_answer_is_read_as_one_finite_number(answer):
    (number,) = LanguageModel().read(answer, TASK.signature, LanguageModelConfig())
    assert math.isfinite(number)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("least-squares", None),
        ("least-squares-prefixes", "it answers query, not prefixes"),
        ("categorical", "it answers query, not class"),
        ("linear-system", "it answers query, not solution"),
        ("ridge", "it would ignore ridge, step in the task's prompts"),
    ],
)
def test_it_answers_one_query_of_prompts_that_it_can_show(task, reason):
    refusal = LanguageModel().supports(load_task(task).signature, LanguageModelConfig())
    assert refusal is None if reason is None else reason in refusal


def test_it_refuses_other_prompts_by_what_they_lack():
    signature = TASK.signature
    several = replace(signature, readout=(1, 2))
    text = replace(signature, prompt=Text)
    for changed, reason in [
        (several, "it answers one query, in prompts of one size"),
        (replace(signature, varies=True), "it answers one query, in prompts of one size"),
        (text, "it needs query, x, y, which the task's prompts lack"),
    ]:
        assert LanguageModel().supports(changed, LanguageModelConfig()) == reason


def test_a_stopped_run_asks_only_what_is_missing(completions):
    model = LanguageModel()
    first = model.ask(["a", "b", "c"], completions.config, CPU)
    assert [next(first), next(first)] == [" 0.5\n"] * 2
    assert list(model.ask(["a", "b", "c"], completions.config, CPU)) == [" 0.5\n"] * 3
    assert completions.asked == ["a", "b", "c"]
    # Other answers may follow with another length.
    longer = completions.config.model_copy(update={"most_tokens": 3})
    assert list(model.ask(["a"], longer, CPU)) == [" 0.5\n"]
    assert completions.asked == ["a", "b", "c", "a"]


def test_a_damaged_line_of_kept_answers_is_asked_again(completions):
    list(LanguageModel().ask(["a", "b"], completions.config, CPU))
    (file,) = AnswerFile("any").path.parent.glob("*.jsonl")
    text = file.read_text()
    file.write_text(text[: len(text) - 9] + "\n[1]\n")
    assert list(LanguageModel().ask(["a", "b"], completions.config, CPU)) == [" 0.5\n"] * 2
    assert completions.asked == ["a", "b", "b"]


def test_a_record_names_the_model_s_file(completions, tmp_path):
    run(model="language-model", task="least-squares", task_args={"dim": 2, "examples": 2},
        model_args={"path": completions.config.path}, eval_prompts=4, device="cpu",
        out=tmp_path / "out")  # fmt: skip
    (answers,) = (tmp_path / "out" / "objects").rglob("*.jsonl")
    assert "tiny.gguf 9a129038d9a00aed, greedy" in answers.read_text()
    assert len(completions.asked) == 4


def test_progress_says_how_many_answers_there_are(completions, monkeypatch, capsys):
    monkeypatch.setattr(language_model, "SECONDS", 0.0)
    list(LanguageModel().ask(["a", "b"], completions.config, CPU))
    assert "2 of 2 answers" in capsys.readouterr().err


def test_an_answer_that_follows_a_cut_off_line_is_kept(completions):
    """A process that is killed leaves a line without its end."""
    answers = AnswerFile("any")
    answers.put("a", "1")
    answers.path.write_text(answers.path.read_text()[:-9])
    answers.put("b", "2")
    assert [AnswerFile("any").get(question) for question in "ab"] == [None, "2"]
