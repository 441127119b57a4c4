"""What the checks of an entry say beside that they hold."""

from __future__ import annotations

from dataclasses import replace

from iclbench.kit.kinds import checks_of_entry
from iclbench_least_squares.fixed import LeastSquares


class Odd(LeastSquares):
    name = "odd-target"

    @property
    def signature(self):
        return replace(super().signature, target="question")


def test_a_target_that_no_shipped_solver_knows_is_noted(provide):
    provide("task", "odd-target", Odd)
    text = dict(checks_of_entry("task", "odd-target"))["prompts"]()
    assert text.endswith("; no shipped solver answers its target 'question'")
