"""Digits: of absolute and squared errors, and of what is not an ordinary error."""

from __future__ import annotations

import numpy as np
import pytest

from iclbench.api.digits import digits


def test_digits_are_those_of_the_absolute_error():
    errors = np.array([1.0, 1e-3, 10.0])
    assert digits(errors, "absolute") == pytest.approx([0.0, 3.0, -1.0])
    assert digits(errors**2, "squared") == pytest.approx([0.0, 3.0, -1.0])


@pytest.mark.parametrize(("dtype", "expected"), [("float32", 7), ("float64", 16)])
def test_a_dtype_s_rounding_has_its_digits(dtype, expected):
    rounding = np.array([np.finfo(dtype).eps / 2])
    assert digits(rounding, "absolute")[0] == pytest.approx(expected, abs=0.3)


def test_no_error_is_infinite_digits_and_no_number_is_none_at_all():
    values = digits(np.array([0.0, np.inf, np.nan, -1.0]), "squared")
    assert values.tolist() == [np.inf, -np.inf, -np.inf, -np.inf]
