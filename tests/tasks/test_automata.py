"""Random automata: how they are drawn, minimized, and kept apart."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from iclbench import UsageError
from iclbench_language.automata import (
    AutomatonRange,
    evaluation_pool,
    minimized,
    random_automaton,
    training_pool,
)

RANGE = AutomatonRange(symbols=18, min_states=4, max_states=12, max_edges=3)


def language(automaton, length):
    """The words of at most that many symbols, by walking every path."""
    words, ends = {()}, {(): 0}
    for _ in range(length):
        ends = {
            (*word, symbol): target
            for word, state in ends.items()
            for symbol, target in automaton[state]
        }
        words |= set(ends)
    return words


def accepts_same(a, b):
    """Whether two automata have one language, by walking both in step (Hopcroft and Karp)."""
    seen, queue = {(0, 0)}, [(0, 0)]
    for s, t in queue:
        one, other = dict(a[s]), dict(b[t])
        if one.keys() != other.keys():
            return False
        for symbol, target in one.items():
            pair = (target, other[symbol])
            if pair not in seen:
                seen.add(pair)
                queue.append(pair)
    return True


def renamed(automaton, random):
    """The same automaton with other numbers of its states; the start stays 0."""
    order = [0, *(1 + random.permutation(len(automaton) - 1))]
    rows = {
        int(order[s]): tuple(sorted((c, int(order[t])) for c, t in edges))
        for s, edges in enumerate(automaton)
    }
    return tuple(rows[s] for s in range(len(automaton)))


def test_automata_are_drawn_as_in_the_source():
    random = np.random.default_rng(0)
    automata = [random_automaton(random, RANGE) for _ in range(2000)]
    assert {len(a) for a in automata} == set(range(4, 13))
    degrees = Counter(len(edges) for a in automata for edges in a)
    assert set(degrees) == {1, 2, 3}
    assert all(abs(n / degrees.total() - 1 / 3) < 0.02 for n in degrees.values())
    for automaton in automata:
        for state, edges in enumerate(automaton):
            symbols, targets = zip(*edges, strict=True)
            assert len(set(symbols)) == len(edges) == len(set(targets))
            assert state not in targets
    sizes = {len({c for edges in a for c, _ in edges}) for a in automata}
    assert min(sizes) < 4
    assert max(sizes) > 14
    assert {c for a in automata for edges in a for c, _ in edges} == set(range(18))


def test_a_minimized_automaton_is_the_unique_smallest_one_of_its_language():
    random = np.random.default_rng(1)
    smaller = AutomatonRange(symbols=3, min_states=4, max_states=7, max_edges=2)
    merged = 0
    for _ in range(300):
        automaton = random_automaton(random, smaller)
        small = minimized(automaton)
        assert accepts_same(automaton, small)
        assert language(automaton, 4) == language(small, 4)
        merged += len(small) < len(automaton)
        # No two states are equivalent, and the names of states don't matter.
        for s, t in itertools.combinations(range(len(small)), 2):
            assert not accepts_same(started_at(small, s), started_at(small, t))
        assert minimized(renamed(automaton, random)) == small
        assert minimized(small) == small
    assert merged > 30


def started_at(automaton, start):
    """The automaton that starts at another state."""
    order = [start, *(s for s in range(len(automaton)) if s != start)]
    number = {s: i for i, s in enumerate(order)}
    return tuple(tuple((c, number[t]) for c, t in automaton[s]) for s in order)


def test_the_pools_are_disjoint_languages():
    evaluation = evaluation_pool(0, RANGE, 100)
    training = training_pool(0, RANGE, 400, 100)
    assert len({*evaluation, *training}) == 500
    assert evaluation_pool(0, RANGE, 40) == evaluation[:40]
    assert evaluation_pool(1, RANGE, 100) != evaluation
    # Where languages are few, a training automaton would often be one of evaluation.
    few = AutomatonRange(symbols=2, min_states=2, max_states=3, max_edges=1)
    known = set(evaluation_pool(0, few, 8))
    assert not known & set(training_pool(0, few, 4, 8))
    with pytest.raises(UsageError, match=r"automata of different languages, not 1,000"):
        evaluation_pool(0, few, 1000)
