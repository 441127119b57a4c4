"""Where in a plugin's code something happened."""

from __future__ import annotations

import re

import pytest
from torch import nn

from iclbench import UsageError, load_task
from iclbench.kit.cases import Case, run_case
from iclbench.runs.honesty import find_lower_precision
from iclbench.runs.places import place_of
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


def test_the_line_that_computes_in_float32_is_named():
    class Rounded:
        """Casts where a plugin's code asks for the examples."""

        def __init__(self, prompt):
            self.tokens = prompt.tokens

        x = y = property(lambda self: self.tokens.float())

    class Model(nn.Module):
        def forward(self, prompt):
            return Averaging.weights(None, Rounded(prompt), None)

    problem = find_lower_precision(Model(), load_task("least-squares", dim=2, examples=4))
    assert re.search(r"^it computes _to_copy in float32 at simple.py:\d+ while", problem)
