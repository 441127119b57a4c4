"""Language models: one question per prompt, asked once, and read as numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from asked_models import parrot

from iclbench import Config, PluginError, RecordError, Text, load_task

TASK = load_task("least-squares", dim=2, examples=3)


def module_of(**changes):
    asked = parrot(**changes)
    return asked, asked().build(TASK.signature, Config())


def prompts(dtype=torch.float32):
    (batch,) = TASK.evaluation_batches(5, 0, dtype)
    return batch.prompt


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_prediction_is_what_the_answer_says(dtype):
    _, module = module_of()
    prompt = prompts(dtype)
    prediction = module(prompt)
    assert prediction.dtype == dtype
    assert prediction.shape == (5, 1, 1)
    torch.testing.assert_close(prediction, prompt.y[:, -1:])


def test_a_question_is_asked_once():
    asked, module = module_of()
    first, again = module(prompts()), module(prompts())
    assert torch.equal(first, again)
    assert len(asked.asked) == len(set(asked.asked)) == 5
    assert list(module.answers) == asked.asked
    assert list(module.used) == asked.asked


def test_remembered_answers_are_used_and_nothing_is_asked():
    _, first = module_of()
    expected = first(prompts())
    asked, module = module_of()
    module.remember(first.answers)
    assert torch.equal(module(prompts()), expected)
    assert asked.asked == []
    module.remember(dict(list(first.answers.items())[:4]))
    with pytest.raises(RecordError, match="no answer to one of its questions"):
        module(prompts())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions": lambda *_: ["one"]}, "1 questions for 5 prompts"),
        ({"ask": lambda *_: iter(["0.5"])}, "1 answers to 5 questions"),
        ({"read": lambda *_: [0.5, 0.5]}, r"not read as \(1, 1\) numbers"),
    ],
)
def test_a_wrong_number_of_anything_is_the_plugin_s_mistake(changes, message):
    _, module = module_of(**changes)
    with pytest.raises(PluginError, match=f"parrot.*{message}"):
        module(prompts())


def test_a_prompt_of_ids_is_answered_too():
    class Echo(parrot()):
        def questions(self, prompt, signature, config):
            return [" ".join(map(str, ids)) for ids in prompt.ids.tolist()]

        def ask(self, questions, config, device):
            return [question[-1] for question in questions]

    signature = replace(TASK.signature, prompt=Text)
    module = Echo().build(signature, Config())
    prediction = module(Text(torch.tensor([[1, 2], [3, 4]])))
    assert prediction.tolist() == [[[2.0]], [[4.0]]]
