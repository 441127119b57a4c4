"""How the differences of two records are written."""

from __future__ import annotations

import pytest

from iclbench.display.comparison import _row

LINE = {"metric": "squared_error", "statistic": "mean digits", "a": 1.15, "b": 1.0,
        "difference": 0.15, "better": "a", "note": ""}  # fmt: skip


def test_a_significant_interval_does_not_seem_to_hold_0():
    row = _row({**LINE, "low": 0.0002, "high": 0.2998, "p": 0.04987})
    assert row["95% interval"] == "0.0002 … 0.30"
    assert row["p"].text == "<0.050"


def test_an_interval_that_holds_0_may_end_near_it():
    row = _row({**LINE, "low": -0.0002, "high": 0.3002, "p": 0.0501, "better": ""})
    assert row["95% interval"] == "0.00 … 0.30"
    assert row["p"].text == "0.050"


@pytest.mark.parametrize(("p", "text"), [(0.0, "<0.001"), (0.0234, "0.023"), (1.0, "1.000")])
def test_a_p_value_has_three_decimals(p, text):
    assert _row({**LINE, "low": 0.1, "high": 0.2, "p": p})["p"].text == text
