"""The task stories: prompts, metrics and endings."""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from stories_support import SMALL, STORIES, texts_of, write

from iclbench import EvaluationContext, Text, UsageError, load_task, run
from iclbench.api.grader import Grader
from iclbench.nn.logits import token_loss
from iclbench_stories.text_metrics import distinct, repetition


def test_every_id_is_a_target_once():
    task = load_task("stories", **SMALL)
    stream = task.corpus.held_out
    count = (len(stream) - 1) // 16
    (batch,) = task.evaluation_batches(count, 0, torch.float32)
    assert batch.prompt.ids.shape == batch.target.shape == (count, 16)
    assert torch.equal(batch.prompt.ids[:, 1:], batch.target[:, :-1])
    targets = Counter(batch.target.flatten().tolist())
    assert targets == Counter(stream[1 : 16 * count + 1].tolist())
    with pytest.raises(UsageError, match=f"use --eval-prompts {count} or fewer"):
        task.evaluation_batches(count + 1, 0, torch.float32)


def test_evaluation_prompts_have_golden_values():
    task = load_task("stories", **SMALL)
    assert task.evaluation_digest(8, 0).startswith("d0952678")
    assert task.evaluation_digest(8, 1) != task.evaluation_digest(8, 0)
    few, more = task.evaluation_draws(3, 0), task.evaluation_draws(9, 0)
    assert (more["stories"][:3] == few["stories"]).all()
    assert len(more["stories"]) == 4


def test_stories_begin_with_end_and_are_held_out():
    task = load_task("stories", **SMALL)
    vocabulary = task.corpus.vocabulary
    held_out = texts_of(task.corpus.held_out, vocabulary)
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    endings = task._endings(batch)
    for beginning, ending in endings.completions(endings.true):
        assert any(story.startswith(beginning + ending) for story in held_out)
    assert (batch.truth["stories"][:, 0] == vocabulary.end).all()
    with pytest.raises(UsageError, match="set endings="):
        load_task("stories", **{**SMALL, "endings": 9999}).evaluation_batches(
            2000, 0, torch.float32
        )


def test_every_ending_has_an_id():
    corpus = load_task("stories", **SMALL).corpus
    shortest = int(np.diff(corpus.starts).min()) - 1  # without END
    args = {**SMALL, "length": 3 * shortest, "beginning": shortest}
    usable = int((np.diff(np.append(corpus.starts, len(corpus.held_out) - 1)) > shortest + 1).sum())
    assert usable < len(corpus.starts)
    task = load_task("stories", **{**args, "endings": usable})
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    assert all(task._endings(batch).true)
    with pytest.raises(UsageError, match=f"set endings={usable}"):
        task._stories(usable + 1, 0)


@pytest.mark.parametrize(("prefixes", "readout"), [(1, (15,)), (4, (3, 7, 11, 15)), (None, None)])
def test_prefixes_selects_the_read_outs(prefixes, readout):
    task = load_task("stories", **SMALL, prefixes=prefixes)
    readout = readout or tuple(range(16))
    assert task.signature.readout == readout
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    (whole,) = load_task("stories", **SMALL).evaluation_batches(4, 0, torch.float32)
    assert torch.equal(batch.target, whole.target[:, list(readout)])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"beginning": 16, "length": 16}, "beginning=16 must be below length=16"),
        ({"prefixes": 17, "length": 16, "beginning": 4}, "prefixes=17 exceeds length=16"),
        ({"top_k": 3}, "top_k and top_p need a temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"tokenizer": "gpt2", "vocabulary": 5000}, "leave it out"),
    ],
)
def test_contradictory_settings_are_refused(args, message):
    with pytest.raises(UsageError, match=message):
        load_task("stories", **args)


def test_a_held_out_split_shorter_than_a_window_is_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", STORIES[:3])
    task = load_task("stories", data=str(path), vocabulary=300, length=4000)
    with pytest.raises(UsageError, match="fewer than a window"):
        _ = task.signature


def test_metrics_of_uniform_predictions():
    task = load_task("stories", **SMALL)
    (batch,) = task.evaluation_batches(5, 0, torch.float32)
    metrics = task.metrics(torch.zeros(5, 16, 300, dtype=torch.float64), batch)
    torch.testing.assert_close(metrics["nll"], torch.full((5,), math.log(300)).double())
    torch.testing.assert_close(metrics["perplexity"], torch.full((5,), 300.0).double())
    sizes = [len(task.corpus.vocabulary.decode(row.tolist()).encode()) for row in batch.target]
    expected = torch.tensor([16 * math.log2(300) / size for size in sizes]).double()
    torch.testing.assert_close(metrics["bits_per_byte"], expected, rtol=1e-6, atol=0)


def test_repetition_and_distinct_phrases():
    moral = "The moral of the story is to be kind. "
    assert repetition("one two three four five") == 0
    assert repetition(moral) == 0
    # 9 words five times: 42 phrases of four words, of which 9 differ.
    assert repetition(moral * 5) == pytest.approx(1 - 9 / 42)
    assert distinct("a b a b", 1) == pytest.approx(2 / 4)
    assert distinct("a b a b", 2) == pytest.approx(2 / 3)
    assert distinct("", 1) == repetition("a") == 0


class LengthGrader(Grader):
    """Scores the length of an ending, and fails on the first."""

    def __init__(self):
        self.calls = []

    def grade(self, completions, folder):
        self.calls.append(list(completions))
        scores = [float(len(c.ending)) for c in completions]
        return {"length": [math.nan, *scores[1:]]}


class Model(torch.nn.Module):
    """Predicts i + 1 after id i, modulo the vocabulary and never END."""

    def __init__(self, vocabulary):
        super().__init__()
        self.size, self.end = vocabulary.size, vocabulary.end

    def forward(self, prompt):
        following = (prompt.ids + 1) % self.size
        following = torch.where(following == self.end, (self.end + 1) % self.size, following)
        return torch.nn.functional.one_hot(following, self.size).float()


def context(grader=None, batch_size=None):
    generator = torch.Generator().manual_seed(0)
    return EvaluationContext(torch.device("cpu"), generator, None, batch_size, grader)


def test_endings_are_generated_measured_and_graded():
    task, grader = load_task("stories", **SMALL), LengthGrader()
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    model = Model(task.corpus.vocabulary)
    metrics = task.evaluate(model, batch, context(grader))
    losses = token_loss(model(Text(batch.prompt.ids)).double(), batch.target)
    torch.testing.assert_close(metrics["nll"], losses.mean(dim=1))
    # A text has 17 ids, since the last position also predicts: END, 6 given and 10 generated.
    assert metrics["ending_length"].tolist() == [10.0] * 4
    expected = [(int(row[6]) + k) % 300 for row in batch.truth["stories"] for k in range(1, 11)]
    endings = task._endings(batch)
    ids = endings.generate(model, context())
    assert list(chain(*ids)) == expected
    assert grader.calls[0] == endings.completions(ids)
    assert math.isnan(metrics["grade_length"][0])
    assert not metrics["grade_length"][1:].isnan().any()
    floor = task.floor(batch, context(grader=grader))
    assert grader.calls[1] == endings.completions(endings.true)
    assert {"grade_length", "repetition"} <= set(floor)
    assert "nll" not in floor
    # Four endings of the model and four of the stories.
    assert task.completions(1, 8) == 8 == sum(map(len, grader.calls))


def test_generated_texts_do_not_depend_on_the_batch_size():
    task = load_task("stories", **SMALL, temperature=1.0, top_k=50)
    (batch,) = task.evaluation_batches(8, 0, torch.float32)
    model = Model(task.corpus.vocabulary)
    texts = [task._endings(batch).generate(model, context(batch_size=n)) for n in (1, 3, None)]
    assert texts[0] == texts[1] == texts[2]


def test_endings_0_generates_nothing():
    task = load_task("stories", **{**SMALL, "endings": 0})
    (batch,) = task.evaluation_batches(3, 0, torch.float32)
    grader = LengthGrader()
    metrics = task.evaluate(Model(task.corpus.vocabulary), batch, context(grader=grader))
    assert set(metrics) == {"nll", "perplexity", "bits_per_byte"}
    assert task.floor(batch, context()) == {}


def test_a_model_that_cannot_generate_is_refused_before_training(tmp_path):
    with pytest.raises(UsageError, match="set endings=0"):
        run(model="baseconv", task="stories", task_args={**SMALL, "prefixes": 1}, recipe="smoke",
            eval_prompts=8, seeds=1, out=tmp_path)  # fmt: skip
