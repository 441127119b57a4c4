"""What a model can't do of a suite is told from what has not been run."""

from __future__ import annotations

import pytest

from iclbench import Suite, run
from iclbench.display.suites import overall_table, suite_parts
from iclbench.display.terminal import print_parts
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.suites import UNSUPPORTED, suite_view
from iclbench.leaderboards.suite_score import score_suite
from iclbench.leaderboards.suite_support import with_support
from iclbench.runs.suites import records_by_board

SUITE = Suite(
    name="tiny",
    version=1,
    summary="three boards",
    defaults={"eval_prompts": 16, "chance": "zero"},
    board=(
        {"name": "plain", "task": "least-squares", "task_args": {"dim": 2, "examples": 4}},
        {"name": "penalized", "task": "ridge", "task_args": {"dim": 2, "examples": 4}},
        {"name": "sizes", "task": "linear-system", "task_args": {"sizes": "2-3"}},
    ),
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    out, boards = tmp_path_factory.mktemp("suite"), SUITE.boards
    made = [run(out=out, **board.request("zero").model_dump()) for board in boards]
    request = boards[0].request("transformer", recipe="smoke", seeds=2)
    made.append(run(out=out, **request.model_dump()))
    return with_support(score_suite(SUITE, records_by_board(SUITE, made)))


def test_a_board_that_a_model_can_t_do_is_known_without_running_it(table):
    trained, zero = table.entries
    assert list(trained.unsupported) == ["sizes"]
    assert "prompts of one size" in trained.unsupported["sizes"]
    # It has a record there.
    assert zero.unsupported == {}


def test_the_page_has_a_dash_there_and_nothing_where_it_was_not_run(table):
    view = suite_view(table, Descriptions(pytest.fail))
    assert [column["task"] for column in view["columns"]] == ["least-squares"]
    shown = [*SUITE.boards]
    from iclbench.leaderboards.site import suites

    cells = [suites._cell(table.entries[0], b.name, table.scales[b.name]) for b in shown]
    assert [cell and cell["text"] for cell in cells[1:]] == [None, UNSUPPORTED]
    assert "prompts of one size" in cells[2]["about"]


def test_the_terminal_counts_and_names_them(table, capsys):
    row, *_ = overall_table(table).rows
    assert row["unsupported"] == 1
    print_parts(suite_parts(table))
    assert "unsupported: transformer" in capsys.readouterr().out
    print_parts(suite_parts(table, {("sizes", "transformer"): "unsupported: prompts differ"}))
    assert "unsupported: transformer\n" not in capsys.readouterr().out
