"""Random numbers for training and evaluation."""

from __future__ import annotations

import pytest
import torch

from iclbench import EvaluationRandom, TrainingRandom


def training(*seeds: int, n: int = 4, size: int = 1) -> TrainingRandom:
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return TrainingRandom(generators, [n] * len(seeds), torch.float64, size=size)


def test_generator_yields_the_same_numbers_beside_others():
    both = training(1, 2).normal("x", 3)
    assert torch.equal(both[4:], training(2).normal("x", 3))
    alone = torch.randn(4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert torch.equal(both[4:], alone)


def test_integers_per_batch_are_equal_within_a_batch():
    numbers = training(1, 2, n=6, size=3).integers("size", 1000, each="batch")
    assert numbers.shape == (12,)
    batches = numbers.reshape(4, 3)
    assert (batches == batches[:, :1]).all()
    assert len(set(batches[:, 0].tolist())) == 4


def test_drawing_for_some_rows_advances_only_their_generators():
    rows = torch.tensor([True, False, True, False, False, False, False, False])
    random = training(1, 2)
    numbers = random.where(rows, case=5).uniform("x", 2)
    assert numbers.shape == (2, 2)
    first, second = random._generators
    assert not torch.equal(first.get_state(), torch.Generator().manual_seed(1).get_state())
    assert torch.equal(second.get_state(), torch.Generator().manual_seed(2).get_state())


def test_a_pass_contains_every_number_once():
    assert sorted(training(1, n=6).passes(6).tolist()) == list(range(6))
    drawn = training(1, n=6).passes(4).tolist()
    assert sorted(drawn[:4]) == list(range(4))
    # The last two begin another pass.
    assert len({*drawn[4:]}) == 2
    assert {*drawn[4:]} < {*range(4)}


def evaluation(n: int = 4, seed: int = 0, case: int | None = None) -> EvaluationRandom:
    return EvaluationRandom("stream", n, seed, case)


def test_evaluation_numbers_depend_only_on_name_case_and_seed():
    expected = evaluation().normal("x", 2)
    random = evaluation()
    random.uniform("other")
    assert torch.equal(random.normal("x", 2), expected)
    for other in (evaluation(seed=1), evaluation(case=3), EvaluationRandom("another", 4, 0)):
        assert not torch.equal(other.normal("x", 2), expected)
    assert not torch.equal(evaluation().normal("y", 2), expected)


@pytest.mark.parametrize("unit", ["row", "batch"])
def test_first_evaluation_rows_do_not_depend_on_their_number(unit):
    few, many = evaluation(4), evaluation(9)
    assert torch.equal(many.normal("x", 2)[:4], few.normal("x", 2))
    assert torch.equal(many.integers("i", 99, each=unit)[:4], few.integers("i", 99, each=unit))
    rows = torch.arange(9) % 2 == 0
    numbers = many.where(rows, case=2).uniform("u", 3)
    assert torch.equal(numbers[:2], few.where(rows[:4], case=2).uniform("u", 3))
    assert set(many.recorded) == {"x", "i", "u 2"}


def test_rows_that_were_chosen_go_on_in_the_next_part():
    def drawn(*sizes):
        random, parts = evaluation(0), []
        for size in sizes:
            random.next_rows(size)
            parts.append(random.where(torch.ones(size, dtype=torch.bool), 1).normal("x"))
        return torch.cat(parts)

    assert torch.equal(drawn(6), drawn(4, 2))


def test_drawing_a_name_twice_is_refused():
    random = evaluation()
    random.normal("x", 2)
    with pytest.raises(ValueError, match="'x' twice"):
        random.uniform("x", 2)


def test_rows_that_were_chosen_are_no_whole_batches():
    generators = [torch.Generator().manual_seed(0)]
    random = TrainingRandom(generators, [8], torch.float64, size=4)
    chosen = random.where(torch.tensor([True] * 6 + [False] * 2), 0)
    assert chosen.integers("any", 9).shape == (6,)
    with pytest.raises(ValueError, match="needs whole batches"):
        chosen.integers("any", 9, each="batch")
