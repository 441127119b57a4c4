"""RegBench: automata, words, their true distribution, and n-grams."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch

from iclbench import UsageError, check_task, load_task, run, training_batch
from iclbench_language.automata import (
    AutomatonRange,
    evaluation_pool,
    training_pool,
)
from iclbench_language.ngram import NGram, NGramConfig
from iclbench_language.words import Words

SMALL = {"length": 40, "automata": 50, "evaluation_automata": 20, "word_length": 9}
RANGE = AutomatonRange(symbols=18, min_states=4, max_states=12, max_edges=3)


def test_prompts_are_words_of_their_automaton():
    task = load_task("regbench", **SMALL)
    (batch,) = task.evaluation_batches(200, 0, torch.float32)
    pool, symbols = evaluation_pool(0, RANGE, 20), 18
    lengths = Counter()
    for row, ids in enumerate(batch.prompt.ids.tolist()):
        automaton = pool[batch.truth["automaton"][row]]
        state, length = 0, 0
        for position, symbol in enumerate(ids):
            assert symbol != symbols + 1  # at least 10 words of 1–9 symbols are rarely so short
            if symbol == symbols:
                lengths[length] += 1
                state, length = 0, 0
            else:
                state, length = dict(automaton[state])[symbol], length + 1
            assert batch.truth["states"][row, position] == state
            following = batch.target[row, position].item()
            assert following in {c for c, _ in automaton[state]} | {-1}
            if position + 1 < len(ids):
                assert following == (-1 if ids[position + 1] == symbols else ids[position + 1])
    assert set(lengths) == set(range(1, 10))


def test_the_last_word_is_followed_by_padding_that_is_not_asked_for():
    args = {**SMALL, "min_words": 2, "max_words": 3, "word_length": 3, "length": None}
    task = load_task("regbench", **args)
    assert task.signature.length == 3 * 4 - 2
    (batch,) = task.evaluation_batches(300, 0, torch.float32)
    ids = batch.prompt.ids
    words = (ids == 18).sum(dim=1) + 1
    assert set(words.tolist()) == {2, 3}
    padded = ids == 19
    assert (padded.int().diff(dim=1) >= 0).all()
    assert (batch.target[padded] == -1).all()
    assert (batch.target.max(dim=1).values >= 0).all()


def test_an_edge_is_uniform_over_the_state_s_edges():
    task = load_task("regbench", **SMALL)
    (batch,) = task.evaluation_batches(2000, 0, torch.float32)
    truth = task.distribution(batch)
    asked = batch.target >= 0
    chosen = truth.gather(2, batch.target.clamp(min=0).unsqueeze(2))[..., 0][asked]
    assert (chosen > 0).all()
    torch.testing.assert_close(truth.sum(dim=2), torch.ones_like(truth[..., 0]))
    # E[1/p of what was chosen] is the number of edges.
    degrees = (truth > 0).sum(dim=2)[asked].double()
    assert abs((1 / chosen).mean() - degrees.mean()) < 1e-12
    first = truth.argmax(dim=2)[asked] == batch.target[asked]
    for degree in (1, 2, 3):
        share = first[degrees == degree].double().mean()
        assert abs(share - 1 / degree) < 0.015


def test_the_true_automaton_is_the_floor_and_chance_its_closed_form():
    task = load_task("regbench", **SMALL)
    (batch,) = task.evaluation_batches(64, 0, torch.float32)
    truth = task.distribution(batch)
    floor = task.floor(batch, None)
    measured = task.metrics(truth.clamp(min=1e-300).log(), batch)
    assert set(floor) == set(measured)
    for name, values in floor.items():
        torch.testing.assert_close(measured[name], values, rtol=0, atol=1e-12)
    assert (floor["accuracy"] == 1).all()
    uniform = torch.full_like(truth, -1e3)
    uniform[..., :18] = 0.0
    measured, chance = task.metrics(uniform, batch), task.chance(batch)
    for name in ("accuracy", "total_variation", "nll"):
        torch.testing.assert_close(measured[name], chance[name])
    by_symbol = [
        task.metrics(torch.nn.functional.one_hot(torch.full((64, 40), s), 20).double(), batch)
        for s in range(18)
    ]
    expected = torch.stack([values["accuracy"] for values in by_symbol]).mean(dim=0)
    torch.testing.assert_close(chance["accuracy"], expected)


def test_the_distance_is_half_the_sum_of_differences():
    task = load_task("regbench", **SMALL)
    (batch,) = task.evaluation_batches(8, 0, torch.float64)
    random = torch.Generator().manual_seed(0)
    prediction = torch.randn(8, 40, 20, generator=random).double()
    truth = task.distribution(batch)
    for row in range(8):
        distances = [
            # max over events of |P − Q|, the definition: the sum where p is larger.
            (prediction[row, t].softmax(0) - truth[row, t]).clamp(min=0).sum().item()
            for t in range(40)
            if batch.target[row, t] >= 0
        ]
        measured = task.metrics(prediction, batch)["total_variation"][row].item()
        assert measured == pytest.approx(np.mean(distances), abs=1e-12)


def ngram_by_hand(words, order, symbols):
    """The probabilities of the next symbol of the last word, by counting strings."""
    counts = [Counter() for _ in range(order)]
    totals = [Counter() for _ in range(order)]
    for word in words:
        padded = ["_"] * order + list(word)
        for position in range(order, len(padded) + 1):
            for n in range(order):
                context = tuple(padded[position - n : position])
                totals[n][context] += 1
                if position < len(padded):
                    counts[n][context, padded[position]] += 1
    probabilities = {s: Fraction(1, symbols) for s in range(symbols)}
    last = ["_"] * order + list(words[-1])
    for n in range(order):
        context = tuple(last[len(last) - n :])
        total = totals[n][context]
        known = {s: counts[n][context, s] for s in range(symbols)}
        rest = {s: p for s, p in probabilities.items() if not known[s]}
        left = 1 - Fraction(sum(known.values()), total)
        new = {
            s: Fraction(known[s], total) if known[s] else left * p / sum(rest.values())
            for s, p in probabilities.items()
        }
        scale = sum(new.values())
        probabilities = {s: p / scale for s, p in new.items()}
    return [float(probabilities[s]) for s in range(symbols)]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_n_grams_are_those_counted_by_hand(order):
    args = {**SMALL, "symbols": 4, "max_edges": 2, "length": 24, "word_length": 5}
    task = load_task("regbench", **args)
    (batch,) = task.evaluation_batches(6, 0, torch.float64)
    model, config = NGram(), NGramConfig(order=order)
    torch.set_default_dtype(torch.float64)
    try:
        predicted = model.build(task.signature, config)(batch.prompt).exp()
    finally:
        torch.set_default_dtype(torch.float32)
    for row, ids in enumerate(batch.prompt.ids.tolist()):
        words = [[]]
        for position, symbol in enumerate(ids):
            if symbol == 4:
                words.append([])
            else:
                words[-1].append(symbol)
            expected = [*ngram_by_hand(words, order, 4), 0.0, 0.0]
            assert predicted[row, position].tolist() == pytest.approx(expected, abs=1e-12)


def test_n_grams_answer_words_alone():
    signature = load_task("categorical").signature
    assert "Words" in NGram().supports(signature, NGramConfig())
    real, ids = Words(torch.zeros(2, 3, dtype=torch.int64)).sequence()
    assert (real.shape, ids.shape) == ((2, 3, 0), (2, 3))


@pytest.mark.parametrize("fixed", [False, True])
def test_training_sees_training_automata_alone(fixed):
    task = load_task("regbench", **SMALL, fixed=fixed)
    batch = training_batch(task, 100, torch.Generator().manual_seed(3), torch.float32)
    pool = training_pool(0, RANGE, 50, 20)
    lines = set()
    for ids in batch.prompt.ids.tolist():
        words = [[]]
        for symbol in ids:
            if symbol == 18:
                words.append([])
            elif symbol < 18:
                words[-1].append(symbol)
        lines.add(tuple(ids))
        writers = [a for a in pool if all(walks(a, word) for word in words)]
        assert writers
    # Two passes of 50 prompts, or 100 fresh ones.
    assert len(lines) == (50 if fixed else 100)


def walks(automaton, word):
    """Whether a word is one of the automaton's."""
    state = 0
    for symbol in word:
        if symbol not in dict(automaton[state]):
            return False
        state = dict(automaton[state])[symbol]
    return True


def test_the_task_conforms_and_its_evaluation_does_not_depend_on_training():
    check_task(load_task("regbench", **SMALL), 4)
    one = load_task("regbench", **SMALL)
    other = load_task("regbench", **{**SMALL, "automata": 7, "fixed": True})
    a, b = (task.evaluation_batches(16, 0, torch.float32)[0] for task in (one, other))
    assert torch.equal(a.prompt.ids, b.prompt.ids)


@pytest.mark.parametrize(("most", "shifted"), [(12, 24), (60, 100), (100, None)])
def test_more_states_are_at_most_as_many_as_an_automaton_may_have(most, shifted):
    shift = load_task("regbench", max_states=most, symbols=200).shifts.get("more-states")
    assert (None if shift is None else shift.task_args["max_states"]) == shifted


def test_shifts_change_automata_and_words():
    task = load_task("regbench", **SMALL)
    assert set(task.shifts) == {"more-states", "shorter-words", "longer-words"}
    larger = load_task("regbench", **SMALL, min_states=6).shifted("more-edges")
    (batch,) = larger.evaluation_batches(200, 0, torch.float32)
    assert (larger.distribution(batch) > 0).sum(dim=2).max() == 4
    (longer,) = task.shifted("longer-words").evaluation_batches(200, 0, torch.float32)
    (base,) = task.evaluation_batches(200, 0, torch.float32)
    assert (longer.prompt.ids == 18).sum() < 0.7 * (base.prompt.ids == 18).sum()
    whole = load_task("regbench", **{**SMALL, "length": None})
    assert "shorter-words" not in whole.shifts  # they would not fill the inputs


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"min_states": 13}, "min_states=13 is above 12"),
        ({"max_edges": 4}, "an automaton of 4 has 3"),
        ({"symbols": 3}, "must be below symbols=3"),
        ({"min_words": 20}, "min_words=20 is above 19"),
        ({"length": 1000}, "length=1000 exceeds the longest possible prompt, 948 ids"),
        ({"automata": 0}, "automata"),
    ],
)
def test_bad_arguments_are_one_line(args, message):
    with pytest.raises(UsageError, match=message) as error:
        load_task("regbench", **args)
    assert "\n" not in str(error.value)


def test_n_grams_order_as_they_should(tmp_path):
    accuracy, distance = {}, {}
    for order in (1, 2, 3):
        record = run(
            model="n-gram", task="regbench", model_args={"order": order}, task_args=SMALL,
            eval_prompts=128, out=tmp_path,
        )  # fmt: skip
        accuracy[order] = record.metrics["accuracy"].mean
        distance[order] = record.metrics["total_variation"].mean
    assert accuracy[1] + 0.1 < accuracy[2] < accuracy[3] < 1
    assert distance[1] > distance[2] > distance[3] > 0
    assert record.metrics["nll"].mean > record.floor["nll"].mean
    with pytest.raises(UsageError, match="needs x, y and query"):
        run(model="averaging", task="regbench", task_args=SMALL, out=tmp_path)
