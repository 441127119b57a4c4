"""One record as tables."""

from __future__ import annotations

import math

import pytest

from iclbench.display.records import bounds_legend, number


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_number_that_is_not_finite_is_called_so(value):
    assert number(value).text == "not finite"


def test_a_number_is_in_scientific_notation():
    assert (number(1234.5).text, number(1234.5).value) == ("1.23e+03", 1234.5)


def test_only_marks_that_occur_are_explained():
    assert bounds_legend("0.1 … 0.2") == []
    assert bounds_legend("0.1 … 0.2 †~") == [
        "† one seed: the interval holds for that seed only · ~ unreliable: few values decide."
    ]
