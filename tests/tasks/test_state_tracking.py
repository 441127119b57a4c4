"""Word problems: groups against their axioms, products, shifts of length, refusals."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from iclbench import UsageError, check_task, evaluate_shifts, load_task, run
from iclbench_state_tracking.groups import multiplication_table, order
from iclbench_state_tracking.products import prefix_products

#: Orders, whether the group is commutative, and the largest order of an element.
GROUPS = {
    "parity": (2, True, 2), "z60": (60, True, 60), "s3": (6, False, 3), "a4": (12, False, 3),
    "a5": (60, False, 5), "s5": (120, False, 6), "a4xz5": (60, False, 15),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_tables_are_groups(name):
    size, commutative, largest = GROUPS[name]
    table = multiplication_table(name)
    assert order(name) == len(table) == size
    everything = torch.arange(size)
    # The first is the identity, and every row and column holds every element.
    assert torch.equal(table[0], everything)
    assert torch.equal(table[:, 0], everything)
    for rows in (table, table.T):
        assert torch.equal(rows.sort(dim=1).values, everything.expand(size, -1))
    # (ij)k = i(jk) for all.
    assert torch.equal(table[table], table[:, table])
    assert torch.equal(table, table.T) == commutative
    # An element's order is the number of powers before the first that is the identity.
    powers = [everything]
    for _ in range(size):
        powers.append(table[powers[-1], everything])
    orders = 1 + (torch.stack(powers) == 0).int().argmax(dim=0)
    assert int(orders.max()) == largest


def test_a5_is_perfect_and_a4_is_not():
    """A5 is not solvable: its commutators generate all of it, which makes the problem hard."""
    for name, expected in (("a5", 60), ("a4", 4), ("s5", 60)):
        table = multiplication_table(name)
        inverse = (table == 0).int().argmax(dim=1)
        i, j = torch.meshgrid(torch.arange(len(table)), torch.arange(len(table)), indexing="ij")
        commutators = set(table[table[i, j], table[inverse[i], inverse[j]]].flatten().tolist())
        generated = commutators
        while True:
            grown = {int(table[a, b]) for a, b in itertools.product(generated, commutators)}
            if grown <= generated:
                break
            generated |= grown
        assert len(generated) == expected


def test_products_are_those_of_permutations():
    """Independently: element i of S4 as a permutation of 0 … 3 in lexicographic order."""
    permutations = list(itertools.permutations(range(4)))
    words = torch.randint(24, (20, 9), generator=torch.Generator().manual_seed(0))
    for word, products in zip(words.tolist(), prefix_products(words, "s4").tolist(), strict=True):
        for t in range(9):
            expected = []
            for x in range(4):
                image = x
                for g in word[: t + 1]:
                    image = permutations[g][image]
                expected.append(image)
            assert permutations[products[t]] == tuple(expected)


def test_parity_is_the_sum_of_bits():
    task = load_task("word-problem")
    (batch,) = task.evaluation_batches(50, 0, torch.float32)
    assert torch.equal(batch.target, batch.prompt.ids.cumsum(dim=1) % 2)


@pytest.mark.parametrize("args", [{}, {"group": "s5"}, {"group": "a4xz5", "pool": 5}], ids=str)
def test_the_task_conforms(args):
    check_task(load_task("word-problem", **args), n=6)


def test_shifts_are_longer_words():
    task = load_task("word-problem", length=5)
    lengths = {n: task.shifted(n).evaluation_batches(3, 0, torch.float32)[0].target.shape[1]
               for n in task.shifts}  # fmt: skip
    assert lengths == {"length-2x": 10, "length-3x": 15, "length-4x": 20}


def test_the_control_multiplies_exactly_at_every_length(tmp_path):
    record = run(task="word-problem", task_args={"group": "a5", "length": 6}, shift=["all"],
                 model="group-product", model_args={"group": "a5"}, eval_prompts=40,
                 out=tmp_path)  # fmt: skip
    assert len(record.evaluations) == 4
    for evaluation in record.evaluations.values():
        assert evaluation.metrics["accuracy"].mean == 1
        assert evaluation.metrics["last_accuracy"].mean == 1
        assert evaluation.metrics["nll"].mean == 0


def test_guessing_is_one_over_the_order(tmp_path):
    record = run(task="word-problem", task_args={"group": "s3"}, model="uniform", eval_prompts=20,
                 out=tmp_path)  # fmt: skip
    assert record.main.metrics["accuracy"].mean == pytest.approx(1 / 6)
    assert record.main.metrics["nll"].mean == pytest.approx(math.log(6), rel=1e-6)


def test_models_without_positions_take_longer_words_and_others_do_not(tmp_path):
    for positions in ("none", "learned"):
        record = run(task="word-problem", model="transformer", recipe="smoke", seeds=1,
                     model_args={"positions": positions}, eval_prompts=20,
                     out=tmp_path)  # fmt: skip
        shifted = evaluate_shifts(record.path, ["length-2x"])
        if positions == "none":
            assert shifted.evaluations["length-2x"].metrics["accuracy"].mean > 0
        else:
            reason = shifted.not_applicable["length-2x"]
            assert reason == "parameter positions is (8, 16), and these prompts need (16, 16)"


@pytest.mark.parametrize(
    ("name", "message"),
    [("d4", "there is no group 'd4'"), ("s7", "more than 1,000"), ("a5xz60", "more than 1,000"),
     ("", "there is no group"), ("z0", "there is no group"), ("z1", "z1 has one element"),
     ("s1xa2", "s1xa2 has one element")],
)  # fmt: skip
def test_unknown_large_and_trivial_groups_are_refused(name, message):
    with pytest.raises(UsageError, match=message) as caught:
        load_task("word-problem", group=name)
    assert "\n" not in str(caught.value)


def test_the_solver_refuses_another_group_s_task(tmp_path):
    with pytest.raises(UsageError, match="parity has 2 elements and the task 60 ids"):
        run(task="word-problem", task_args={"group": "a5"}, model="group-product", out=tmp_path)
