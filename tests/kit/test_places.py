"""Where in a plugin's code an error arose."""

from __future__ import annotations

import pytest

from iclbench import UsageError
from iclbench.kit.cases import Case, run_case
from iclbench.kit.places import place_of
from iclbench_solvers.simple import Averaging
from iclbench_transformer.architecture import TransformerConfig


def raised(function):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function()
    return caught.value


def in_a_plugin():
    Averaging.weights(None, None, None)


def test_the_last_line_of_a_plugin_is_named():
    error = raised(in_a_plugin)
    name, _, line = place_of(error).partition(":")
    assert (name, line.isdigit()) == ("simple.py", True)
    # A test is no plugin.
    assert place_of(raised(lambda: int("x"))) == ""


def test_an_error_that_says_what_is_wrong_has_no_place():
    def refuse():
        raise UsageError("no")

    assert place_of(raised(refuse)) == ""
    assert place_of(raised(lambda: TransformerConfig(layers=0))) == ""


def test_a_circle_of_errors_has_an_end():
    error = UsageError("a")
    error.__cause__ = other = UsageError("b")
    other.__cause__ = error
    assert place_of(error) == ""


def test_an_error_that_hides_another_has_no_place():
    def hide():
        try:
            in_a_plugin()
        except Exception:
            raise UsageError("no") from None

    assert place_of(raised(hide)) == ""


def test_a_check_names_the_line_that_its_error_is_of():
    def check():
        try:
            in_a_plugin()
        except Exception as error:
            raise UsageError("on a task: it fails") from error

    outcome = run_case(Case("solvers", "model", "zero", "module", check))
    assert outcome.status == "failed"
    assert outcome.text.startswith("on a task: it fails, at simple.py:")
