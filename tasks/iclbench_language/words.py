"""Prompts of words, and the random walks of automata that they are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .automata import Tables


class Words(NamedTuple):
    """Words of one automaton: ids (B, T), int64.

    The last two ids of the vocabulary are the separator between words and the padding after the
    last one; the others are symbols.
    """

    ids: Tensor

    def sequence(self) -> tuple[Tensor, Tensor]:
        """Return no real features, (B, T, 0), and ids (B, T)."""
        return torch.zeros(*self.ids.shape, 0, device=self.ids.device), self.ids


#: The number of ids that are no symbols: the separator and the padding.
SPECIAL = 2


class Walks(NamedTuple):
    """Prompts (B, L) of ids, and the state (B, L) of the automaton before each id."""

    ids: Tensor
    states: Tensor


def walks(
    tables: Tables, automaton: Tensor, lengths: Tensor, edges: Tensor, *, separator: int
) -> Walks:
    """Words of automata (B,), of lengths (B, W) that are 0 for absent words.

    `edges` (B, L), uniform below a multiple of every degree, chooses an edge before each id. The
    id after a word is `separator`, and `separator` + 1 after the last. Every word starts at state
    0. L is the number of ids that are made; what is beyond them is cut.
    """
    separators, ends = _layout(lengths, edges.shape[1])
    state = torch.zeros_like(automaton)
    ids, states = [], []
    for position in range(edges.shape[1]):
        # Exactly uniform: `edges` is uniform below a multiple of the degree.
        edge = edges[:, position] % tables.degree[automaton, state]
        states.append(state)
        between = separators[:, position]
        ids.append(torch.where(between, separator, tables.symbol[automaton, state, edge]))
        state = torch.where(between, 0, tables.target[automaton, state, edge])
    padding = torch.arange(edges.shape[1], device=ends.device) >= ends.unsqueeze(1)
    ids_of_prompt = torch.stack(ids, dim=1).masked_fill(padding, separator + 1)
    return Walks(ids_of_prompt, torch.stack(states, dim=1))


def _layout(lengths: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Where the separators are, (B, count), and the number of ids of each prompt, (B,)."""
    present = lengths > 0
    # Each word takes its length and a separator; the last has none.
    ends = (lengths + present).cumsum(dim=1)
    separators = torch.zeros(len(lengths), count + 1, dtype=torch.bool, device=lengths.device)
    # Separators beyond the ids that are made, or of absent words, fall on the last column.
    places = torch.where(present, ends - 1, count).clamp(max=count)
    separators.scatter_(1, places, torch.ones_like(places, dtype=torch.bool))
    return separators[:, :count], ends[:, -1] - 1
