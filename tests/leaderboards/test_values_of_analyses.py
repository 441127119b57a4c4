"""Numbers of a study's record."""

from __future__ import annotations

from iclbench.leaderboards.values import single_numbers


def test_the_single_numbers_of_an_analysis_are_neither_maps_nor_truth_values():
    analysis = {
        "error": 2,
        "exact": True,
        "unknown": None,
        "layers": [{"misfit": 0.5, "by_head": [1.0, 2.0]}],
        "maps": [{"name": "attention", "x": 1.0}],
        "plots": [{"y": {"title": "misfit", "low": 0.0}}],
    }
    assert dict(single_numbers(analysis)) == {"error": 2.0, "layers 0 misfit": 0.5}
