"""The recall tasks: prompts against their definitions, answers, chance, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from iclbench import UNASKED, UsageError, check_task, load_task, run, training_batch
from iclbench_recall.base import distinct
from iclbench_recall.mqar import weighted_choice

NAMES = [
    "mqar", "mqar-continuous", "in-context-recall", "noisy-recall", "fuzzy-recall",
    "selective-copying", "compression", "memorization",
]  # fmt: skip


def evaluation(name, n=64, **args):
    task = load_task(name, **args)
    (batch,) = task.evaluation_batches(n, 0, torch.float32)
    return task, batch


def trained_on(name, n=64, **args):
    task = load_task(name, **args)
    return task, training_batch(task, n, torch.Generator().manual_seed(0), torch.float32)


@pytest.mark.parametrize("name", NAMES)
def test_the_tasks_conform(name):
    size = {} if "mqar" not in name else {"vocabulary": 64}
    check_task(load_task(name, **size), n=6)
    check_task(load_task(name, pool=5, **size), n=6)


def test_mqar_asks_each_key_once_and_shows_no_value_after_the_pairs():
    task, batch = evaluation("mqar", random_filler=False, pairs=5, length=40)
    assert task.signature.readout == tuple(range(10, 40, 2))
    for ids, target in zip(batch.prompt.ids.numpy(), batch.target.numpy(), strict=True):
        keys, values = ids[:10:2], ids[1:10:2]
        assert len(set(keys)) == len(set(values)) == 5
        assert keys.min() >= 1
        assert keys.max() < 4096 <= values.min()
        assert values.max() < 8192
        asked = np.flatnonzero(target != UNASKED)
        assert sorted(ids[10 + 2 * asked]) == sorted(keys)
        value_of = dict(zip(keys, values, strict=True))
        assert [value_of[k] for k in ids[10 + 2 * asked]] == list(target[asked])
        # Everything else is 0.
        assert np.count_nonzero(ids[10:]) == 5


def test_mqar_fills_with_random_ids_of_the_whole_vocabulary():
    _, batch = evaluation("mqar", n=256, pairs=1, vocabulary=16)
    counts = np.bincount(batch.prompt.ids[:, 3::2].flatten().numpy(), minlength=16)
    assert counts.min() > 0.8 * counts.mean()


def test_mqar_shows_the_pairs_in_each_pass():
    _, batch = evaluation("mqar", pairs=3, passes=2, length=32)
    assert torch.equal(batch.prompt.ids[:, :6], batch.prompt.ids[:, 6:12])


def test_slots_are_chosen_with_their_weights():
    """The first choice has probability w_j/Σw; given it, the second w_k/(Σw − w_j)."""
    generator = torch.Generator().manual_seed(0)
    chosen = weighted_choice(
        torch.rand(200_000, 4, generator=generator, dtype=torch.float64), 0.01, 2
    ).numpy()
    weights = np.arange(1, 5) ** (0.01 - 1.0)
    for j in range(4):
        for k in set(range(4)) - {j}:
            expected = weights[j] / weights.sum() * weights[k] / (weights.sum() - weights[j])
            share = np.mean((chosen[:, 0] == j) & (chosen[:, 1] == k))
            assert share == pytest.approx(expected, abs=5 * math.sqrt(expected / 200_000))


def test_distinct_integers_are_uniform():
    class Drawn:
        def integers(self, name, stop, *shape):
            return torch.randint(stop, (60_000,), generator=generator)

    generator = torch.Generator().manual_seed(0)
    numbers = distinct(Drawn(), "key", 4, 3)
    codes, counts = np.unique(numbers.numpy() @ [16, 4, 1], return_counts=True)
    assert len(codes) == 4 * 3 * 2
    assert counts.min() > 2500 - 5 * math.sqrt(2500)
    assert counts.max() < 2500 + 5 * math.sqrt(2500)


def test_the_continuous_variant_shows_vectors_and_asks_their_numbers():
    task, batch = evaluation("mqar-continuous", vocabulary=40, dim=6, pairs=5, passes=2)
    vectors = task.parameters["vectors"].float()
    tokens = batch.prompt.tokens
    assert tokens.shape == (64, 15, 12)
    assert not tokens[:, 10:, 6:].any()
    for row, target in zip(tokens, batch.target, strict=True):
        number = [int((vectors - t).abs().sum(dim=1).argmin()) for t in row[:, :6]]
        value = [int((vectors - t).abs().sum(dim=1).argmin()) for t in row[:10, 6:]]
        pairs = dict(zip(number[:10], value, strict=True))
        assert len(pairs) == 5
        assert min(value) >= 20 > max(number)
        # The value of the key, counted among values.
        assert [pairs[k] - 20 for k in number[10:]] == target.tolist()
        assert sorted(number[10:]) == sorted(number[:5]) == sorted(number[5:10])


@pytest.mark.parametrize(("name", "plain"), [("in-context-recall", 16), ("noisy-recall", 16)])
def test_recall_asks_values_of_repeated_keys_and_trains_on_every_next_id(name, plain):
    _, batch = evaluation(name)
    assert batch.prompt.ids.shape == (64, 127)
    noise = 0
    for ids, target in zip(batch.prompt.ids.tolist(), batch.target.tolist(), strict=True):
        values = {}
        for t in range(0, 127, 2):
            if ids[t] >= plain:
                noise += 1
                assert target[t] == UNASKED
                continue
            assert ids[t] < plain // 2
            # The last value is not shown.
            value = ids[t + 1] if t < 126 else target[t]
            assert target[t] == values.get(ids[t], UNASKED)
            assert values.setdefault(ids[t], value) == value
        assert set(target[1::2]) == {UNASKED}
        assert target[126] != UNASKED
    share = noise / (64 * 63)
    assert share == pytest.approx(0.2 if name == "noisy-recall" else 0.0, abs=0.03)
    _, batch = trained_on(name)
    assert torch.equal(batch.target[:, :-1], batch.prompt.ids[:, 1:])


def parsed(ids, pad, keys):
    """The pairs of a fuzzy sequence, each (key, value, position of the value's first id)."""
    pairs, t = [], next(i for i, x in enumerate(ids) if x != pad)
    while t < len(ids):
        start = t
        while t < len(ids) and ids[t] < keys:
            t += 1
        middle = t
        while t < len(ids) and ids[t] >= keys:
            t += 1
        pairs.append((tuple(ids[start:middle]), tuple(ids[middle:t]), middle))
    return pairs


def test_fuzzy_recall_asks_all_ids_of_the_values_of_repeats():
    _, batch = evaluation("fuzzy-recall", n=200)
    sizes = set()
    for ids, target in zip(batch.prompt.ids.tolist(), batch.target.tolist(), strict=True):
        # The last id is only a target.
        pairs = parsed([*ids, target[-1]], pad=15, keys=7)
        values, expected = {}, [UNASKED] * 128
        for key, value, position in pairs:
            assert len(key) == len(set(key)) == 3
            assert len(value) == len(set(value)) <= 3
            sizes.add(len(value))
            if key in values:
                assert value == values[key]
                expected[position - 1 : position - 1 + len(value)] = value
            values[key] = value
        assert expected == target
        assert pairs[-1][0] in {key for key, _, _ in pairs[:-1]}
    assert sizes == {1, 2, 3}


def test_fuzzy_recall_trains_on_keys_of_every_size():
    _, batch = trained_on("fuzzy-recall", n=200)
    assert torch.equal(batch.target[:, :-1], batch.prompt.ids[:, 1:])
    sizes, longest = [], 0
    for ids, last in zip(batch.prompt.ids.tolist(), batch.target[:, -1].tolist(), strict=True):
        pairs = parsed([*ids, last], pad=15, keys=7)
        assert pairs[-1][0] in {key for key, _, _ in pairs[:-1]}
        sizes += [len(key) for key, _, _ in pairs]
        longest = max(longest, sum(x != 15 for x in ids))
    shares = np.bincount(sizes, minlength=4)[1:] / len(sizes)
    assert shares == pytest.approx([1 / 3] * 3, abs=0.03)
    # As the source: no pair starts where the largest and the probe may not fit.
    assert 115 < longest < 128


def test_selective_copying_asks_the_ids_in_order():
    _, batch = evaluation("selective-copying")
    for ids, target in zip(batch.prompt.ids.numpy(), batch.target.numpy(), strict=True):
        assert list(ids[-17:]) == [15, *[14] * 16]
        context = ids[:-17]
        assert list(context[context != 14]) == list(target)
        # No blank follows the last id.
        assert context[-1] != 14


def test_compression_asks_every_id_of_the_marker():
    task, batch = evaluation("compression")
    assert task.signature.readout == (31,) * 31
    assert task.signature.reads_one_state
    assert torch.equal(batch.prompt.ids[:, :-1], batch.target)
    assert set(batch.prompt.ids[:, -1].tolist()) == {15}
    assert int(batch.target.max()) == 14


def test_memorization_has_one_map_per_task_seed():
    task, batch = evaluation("memorization")
    table = task.parameters["map"].long()
    assert len(set(table.tolist())) == len(table) == 127
    assert (int(table.min()) >= 127, int(table.max()) <= 254) == (True, True)
    assert torch.equal(batch.target, table[batch.prompt.ids[:, ::2]])
    assert set(batch.prompt.ids[:, 1::2].flatten().tolist()) == {255}
    other = load_task("memorization", task_seed=1)
    assert not torch.equal(other.parameters["map"].long(), table)


@pytest.mark.parametrize("name", NAMES)
def test_chance_is_a_guess_among_all_answers(name):
    task, batch = evaluation(name, n=2000)
    answers = batch.target[batch.target != UNASKED]
    assert task.chance(batch)["accuracy"].unique().tolist() == [1 / task.answers]
    # All answers occur with the same probability.
    counts = torch.bincount(answers, minlength=task.signature.output_width)
    possible = counts[counts > 0].double()
    share = float(possible.max() / possible.sum())
    expected = 1 / task.answers
    assert share < expected + 8 * math.sqrt(expected / len(answers))


@pytest.mark.parametrize(
    ("name", "model", "model_args"),
    [
        ("mqar", "lookup", {}), ("in-context-recall", "lookup", {}),
        ("noisy-recall", "lookup", {}), ("fuzzy-recall", "lookup", {"ids": 6}),
        ("selective-copying", "copy-unblanked", {}),
    ],
)  # fmt: skip
def test_controls_are_exact(name, model, model_args, tmp_path):
    args = {"vocabulary": 512} if name == "mqar" else {}
    record = run(task=name, task_args=args, model=model, model_args=model_args, eval_prompts=200,
                 out=tmp_path)  # fmt: skip
    assert record.main.metrics["accuracy"].mean == 1
    assert record.main.floor.metrics["accuracy"].mean == 1
    # `lookup` keeps a share for other ids; the other one is certain.
    assert (record.main.metrics["nll"].mean == 0) == (model == "copy-unblanked")


def test_guessing_has_the_accuracy_of_the_closed_form(tmp_path):
    for pairs in (3, 4):
        record = run(task="mqar", task_args={"pairs": pairs}, model="context-guess",
                     eval_prompts=20, out=tmp_path)  # fmt: skip
        assert record.chance
        # Values differ, so each guess is right with probability 1/n exactly.
        assert record.main.metrics["accuracy"].mean == pytest.approx(1 / pairs, rel=1e-7)
        assert record.main.metrics["nll"].mean == pytest.approx(math.log(pairs), abs=1e-4)
    uniform = run(task="mqar", model="uniform", eval_prompts=20, out=tmp_path)
    assert uniform.main.metrics["accuracy"].mean == pytest.approx(1 / 8192, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("mqar", {"pairs": 20}, "need 80 ids, more than length=64"),
        ("mqar", {"vocabulary": 8, "pairs": 4}, "has 3 keys, fewer than pairs=4"),
        ("mqar-continuous", {"vocabulary": 8, "pairs": 5}, "has 4 keys"),
        ("noisy-recall", {"noise_ids": 31}, "must leave a key and two values"),
        # One key and one value, or a single token to copy: every answer would be the same.
        ("in-context-recall", {"vocabulary": 2}, "vocabulary.* greater than or equal to 3"),
        ("noisy-recall", {"vocabulary": 18}, "must leave a key and two values"),
        ("memorization", {"vocabulary": 4}, "vocabulary.* greater than or equal to 5"),
        ("selective-copying", {"vocabulary": 3}, "vocabulary.* greater than or equal to 4"),
        ("fuzzy-recall", {"vocabulary": 3, "most": 1}, "vocabulary.* greater than or equal to 4"),
        ("in-context-recall", {"noise": 0.1}, "needs noise_ids"),
        ("fuzzy-recall", {"vocabulary": 6}, "has 2 ids of keys"),
        ("fuzzy-recall", {"vocabulary": 63, "most": 14}, "more keys of most=14 tokens than int64"),
        ("fuzzy-recall", {"length": 17}, "needs a length of 18"),
        ("selective-copying", {"length": 33}, "more than length=33"),
        ("in-context-recall", {"length": 7}, "multiple of 2"),
    ],
    ids=str,
)
def test_bad_arguments_are_one_line(name, args, message):
    with pytest.raises(UsageError, match=message) as caught:
        load_task(name, **args)
    assert "\n" not in str(caught.value)


def test_solvers_refuse_what_they_cannot_read(tmp_path):
    for model, task, reason in (
        ("lookup", "compression", "asks one position several times"),
        ("lookup", "mqar-continuous", "asks for class"),
        ("context-guess", "in-context-recall", "pairs of ids before"),
        ("context-guess", "selective-copying", "pairs of ids before"),
        ("copy-unblanked", "mqar", "read-outs at the end"),
    ):
        with pytest.raises(UsageError, match=reason):
            run(task=task, model=model, out=tmp_path)
