"""A suite that can't be run as it is written is refused by the kit."""

from __future__ import annotations

import pytest

from iclbench import ConformanceError, Suite, UsageError, check_suite
from iclbench.kit.trials import NotCheckedError
from iclbench_least_squares.fixed import LeastSquares


def suite_of(**board):
    fields = {"name": "first", "task": "least-squares", "chance": "zero", **board}
    return Suite(name="one", version=1, summary="one board", board=(fields,))


@pytest.mark.parametrize(
    ("board", "reason"),
    [
        ({"reference": "ridgee"}, "unknown model 'ridgee'"),
        ({"shift": ["nosuch"]}, "first with zero: .*nosuch"),
        ({"dtype": "float33"}, "float33"),
        ({"metrics": ["nosuch"]}, "first with zero: .*nosuch"),
    ],
)
def test_what_no_run_could_do_is_a_failure(board, reason):
    with pytest.raises((ConformanceError, ValueError), match=reason):
        check_suite(suite_of(**board))


def test_a_task_without_its_data_is_not_checked(provide):
    class Lacking(LeastSquares):
        name = "lacking"

        def __init__(self, config):
            raise UsageError("its data are not there")

    provide("task", "lacking", Lacking)
    with pytest.raises(NotCheckedError, match="its data are not there"):
        check_suite(suite_of(task="lacking"))
