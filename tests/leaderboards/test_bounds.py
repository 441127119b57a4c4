"""The marks of intervals."""

from __future__ import annotations

from iclbench.leaderboards.bounds import ONE_SEED, RANGE, UNRELIABLE, Bounds, bounds_mark


def test_an_interval_has_the_mark_of_its_kind():
    assert bounds_mark(Bounds(None, None, None, False), 3) == ""
    assert bounds_mark(Bounds(0.0, 1.0, "range over seeds", False), 3) == RANGE
    assert bounds_mark(Bounds(0.0, 1.0, "seeds and prompts", True), 3) == ""
    assert bounds_mark(Bounds(0.0, 1.0, "prompts", False), 1) == ONE_SEED + UNRELIABLE
