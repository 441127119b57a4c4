"""When the values of all prompts agree with those measured again."""

from __future__ import annotations

import numpy as np

from iclbench.runs.values import Arithmetic, _strays, compare_values


def test_errors_near_the_floor_that_belong_to_other_prompts_are_noticed():
    errors = np.linspace(1e-7, 5e-7, 50)[None]
    arithmetic = Arithmetic("float32", {"e": "absolute"}, 1.0, {"e": errors[0]})
    for recorded, differing in ((errors, []), (errors[:, ::-1], ["e in order"])):
        checks = compare_values("", {"e": recorded}, {"e": errors}, arithmetic)
        assert [check.name for check in checks if not check.holds] == differing


def test_of_few_values_none_may_differ():
    assert [_strays(count) for count in (100, 101, 2000, 5000)] == [0, 2, 2, 5]
