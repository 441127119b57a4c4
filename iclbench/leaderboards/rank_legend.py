"""What the ranks of a table mean, and the words that stand in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .groups import ALONE, CHOSEN, DIVERGED, GIVEN, OVER, SINGLE
from .held_out import FAILING, PENDING
from .row import OVER_BUDGET, Row, in_track

#: Why a row has no rank.
_UNRANKED = {
    ALONE: "no other row of the track is ranked",
    SINGLE: "a single seed is not ranked",
    GIVEN: "the training started from them, so it is not ranked",
    CHOSEN: "the seeds are not 0, 1, 2, … and may be the best of many, so it is not ranked",
    OVER: f"its training took over {OVER_BUDGET:g} times its budget, so it is not ranked",
    DIVERGED: "every seed's training diverged, so it is not ranked",
    FAILING: "significantly worse on held-out prompts, so not ranked",
    PENDING: "not yet evaluated on held-out prompts, as other published rows are, so not ranked",
}

#: The same in words that fill in "A row has no rank if …".
UNRANKED = (
    "it has one seed, starts from given weights, has *chosen seeds* (not 0, 1, 2, …), took over "
    f"{OVER_BUDGET:g} times its budget, diverged for every seed, is significantly worse on "
    "held-out prompts, or is *not held out* although others of its folder are"
)


def rank_legend(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """An example of a rank among these trained rows, and each word, with what it means."""
    ranked = [row.rank for row in rows if row.rank is not None]
    wide = next((rank for rank in ranked if rank.first < rank.last), None)
    if wide is not None:
        yield f"rank {wide}", "by significance tests within the track, its rank may be any of these"
    reasons = {row.unranked for row in rows}
    yield from ((word, text) for word, text in _UNRANKED.items() if word in reasons)


def undecided(tracks: Sequence[str]) -> str:
    """That no two ranked rows of these tracks differ significantly; empty for none."""
    where = " and ".join(map(in_track, tracks))
    told = "no two ranked rows differ significantly: their order means nothing."
    return f"{where[0].upper()}{where[1:]}, {told}" if where else ""
