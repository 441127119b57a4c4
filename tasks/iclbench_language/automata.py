"""Random probabilistic finite automata, minimized, and pools of different ones (RegBench)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from iclbench import UsageError, philox

#: A state's edges, (symbol, next state) in the order of the symbols. State 0 is the start.
Automaton = tuple[tuple[tuple[int, int], ...], ...]

#: Automata that are drawn for each one that is asked for, before giving up.
TRIES = 20


class AutomatonRange(NamedTuple):
    """What automata are drawn from: numbers of symbols and states, and edges of a state."""

    symbols: int
    min_states: int
    max_states: int
    max_edges: int


class Tables(NamedTuple):
    """A pool of A automata with S states and E edges at most, int64.

    symbol and target (A, S, E), the symbol of an edge and the state that it leads to; degree
    (A, S), the number of edges of a state. Unused entries are 0, and edges come first.
    """

    symbol: Tensor
    target: Tensor
    degree: Tensor

    def to(self, device: torch.device) -> Tables:
        """The same tables on a device."""
        return Tables(*(table.to(device) for table in self))


def random_automaton(random: np.random.Generator, r: AutomatonRange) -> Automaton:
    """An automaton as RegBench draws it, not yet minimized.

    It has min_states … max_states states and an alphabet of max_edges + 1 … symbols of the
    symbols. Each state has 1 … max_edges edges with different symbols, to different states other
    than itself. All states accept.
    """
    states = int(random.integers(r.min_states, r.max_states + 1))
    size = int(random.integers(r.max_edges + 1, r.symbols + 1))
    alphabet = random.permutation(r.symbols)[:size]
    automaton = []
    for state in range(states):
        edges = int(random.integers(1, r.max_edges + 1))
        symbols = alphabet[random.permutation(size)[:edges]]
        # Numbers of the other states: those from `state` on are one higher.
        others = random.permutation(states - 1)[:edges]
        targets = others + (others >= state)
        automaton.append(tuple(sorted(zip(symbols.tolist(), targets.tolist(), strict=True))))
    return tuple(automaton)


def minimized(automaton: Automaton) -> Automaton:
    """The smallest automaton of the same language, with its reachable states in a fixed order.

    Two automata have the same language if and only if this gives the same result for both: the
    smallest one is unique up to the names of its states (Myhill–Nerode), and these are numbered
    here in breadth-first order, edges in the order of their symbols.
    """
    blocks = [0] * len(automaton)
    count = 1
    while True:
        # Moore's refinement: states stay together while their edges lead to the same blocks. A
        # missing edge leads to rejection, so the symbols are compared too.
        keys = [
            (block, tuple((symbol, blocks[target]) for symbol, target in edges))
            for block, edges in zip(blocks, automaton, strict=True)
        ]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        blocks = [numbers[key] for key in keys]
        if len(numbers) == count:
            break
        count = len(numbers)
    representatives = dict(zip(reversed(blocks), reversed(range(len(blocks))), strict=True))
    order = {blocks[0]: 0}
    queue = [blocks[0]]
    for block in queue:
        for _, target in automaton[representatives[block]]:
            if blocks[target] not in order:
                order[blocks[target]] = len(order)
                queue.append(blocks[target])
    return tuple(
        tuple((symbol, order[blocks[target]]) for symbol, target in automaton[representatives[b]])
        for b in queue
    )


@lru_cache(maxsize=8)
def evaluation_pool(seed: int, r: AutomatonRange, count: int) -> tuple[Automaton, ...]:
    """That many automata of different languages; the first n of more are the same n.

    Raises UsageError if there are too few.
    """
    return tuple(_distinct(philox("regbench automata", seed), r, count, frozenset()))


@lru_cache(maxsize=8)
def training_pool(
    seed: int, r: AutomatonRange, count: int, evaluation: int
) -> tuple[Automaton, ...]:
    """That many others, none with the language of one of the `evaluation` first of evaluation.

    Raises UsageError if there are too few.
    """
    excluded = frozenset(evaluation_pool(seed, r, evaluation))
    return tuple(_distinct(philox("regbench training automata", seed), r, count, excluded))


def _distinct(
    random: np.random.Generator, r: AutomatonRange, count: int, excluded: frozenset[Automaton]
) -> Iterator[Automaton]:
    known = set(excluded)
    for _ in range(TRIES * count):
        automaton = minimized(random_automaton(random, r))
        if automaton not in known:
            known.add(automaton)
            yield automaton
        if len(known) - len(excluded) == count:
            return
    raise UsageError(
        f"regbench: {TRIES * count:,} draws gave {len(known) - len(excluded):,} automata of "
        f"different languages, not {count:,}; ask for fewer, or for more states or symbols"
    )


def tables_of(pool: tuple[Automaton, ...]) -> Tables:
    """The tables of a pool."""
    states = max(len(automaton) for automaton in pool)
    edges = max(len(edges) for automaton in pool for edges in automaton)
    symbol = np.zeros((len(pool), states, edges), dtype=np.int64)
    target, degree = np.zeros_like(symbol), np.zeros(symbol.shape[:2], dtype=np.int64)
    for a, automaton in enumerate(pool):
        for s, row in enumerate(automaton):
            degree[a, s] = len(row)
            symbol[a, s, : len(row)], target[a, s, : len(row)] = zip(*row, strict=True)
    return Tables(*(torch.from_numpy(table) for table in (symbol, target, degree)))
