"""Evaluation under shift: larger automata, busier ones, and other lengths of words."""

from __future__ import annotations

from iclbench import Shift

from .config import MOST_STATES, RegBenchConfig


def language_shifts(c: RegBenchConfig) -> dict[str, Shift]:
    """The shifts that are defined for a configuration, by name. T, the inputs, stays the same."""
    shifts = {}
    more = {"min_states": c.max_states + 1, "max_states": min(2 * c.max_states, MOST_STATES)}
    if c.max_states < MOST_STATES:
        summary = f"automata with {more['min_states']}–{more['max_states']} states"
        shifts["more-states"] = Shift(summary, more)
    if c.max_edges < min(c.min_states, c.symbols) - 1 and c.max_edges < 6:
        summary = f"up to {c.max_edges + 1} edges per state"
        shifts["more-edges"] = Shift(summary, {"max_edges": c.max_edges + 1})
    return shifts | _lengths(c)


def _lengths(c: RegBenchConfig) -> dict[str, Shift]:
    """Words half as long, and twice as long, where prompts are cut at the same T."""
    shifts = {}
    lengths = {"shorter-words": c.word_length // 2, "longer-words": 2 * c.word_length}
    for name, length in lengths.items():
        longest = c.max_words * (length + 1) - 2
        if length >= 1 and longest >= c.inputs:
            arguments = {"word_length": length, "length": c.inputs}
            shifts[name] = Shift(f"words of up to {length} symbols", arguments)
    return shifts
