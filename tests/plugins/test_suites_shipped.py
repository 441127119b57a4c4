"""The shipped suites: every board can be run, and says what counts as chance."""

from __future__ import annotations

import functools

import pytest

import iclbench_suites
from iclbench import Architecture, host
from iclbench.runs.plan import resolve
from iclbench.runs.suites import find_suite

ENTRIES = {entry.name: entry for entry in iclbench_suites.iclbench_suites()}
#: Boards whose data must be downloaded.
DOWNLOADED = {("papers", "stories")}
BOARDS = [
    (name, board)
    for name in ENTRIES
    for board in find_suite(name).boards
    if (name, board.name) not in DOWNLOADED
]


@functools.cache
def models() -> list[str]:
    return [entry.name for _, entry in host().entries("model")]


def test_entries_are_named_and_described_like_their_files():
    assert set(ENTRIES) == {"core", "precision", "smoke", "papers"}
    for name, entry in ENTRIES.items():
        suite = find_suite(name)
        assert (suite.name, suite.summary) == (name, entry.summary)


@pytest.mark.parametrize(("name", "board"), BOARDS, ids=[f"{n}-{b.name}" for n, b in BOARDS])
def test_a_board_s_solvers_can_be_run_and_one_is_chance(name, board):
    plan = resolve(board.request(board.chance))
    assert host().load("model", board.chance, Architecture).chance
    assert plan.spec.origin == "solver"
    if board.reference is not None:
        assert resolve(board.request(board.reference)).spec.origin == "solver"
        assert plan.task.floor_kind == "none"
    if name == "precision":
        assert plan.task.statistic == "mean digits" or board.fields["task"] == "gradient"


def test_smoke_has_the_boards_of_core():
    core, smoke = (find_suite(name) for name in ("core", "smoke"))
    assert [b.name for b in smoke.boards] == [b.name for b in core.boards]
    for one, other in zip(core.boards, smoke.boards, strict=True):
        assert one.fields["task"] == other.fields["task"]
        assert (one.chance, one.reference) == (other.chance, other.reference)


def test_smoke_trains_for_two_minutes_at_most():
    budgets = [board.request("m") for board in find_suite("smoke").boards]
    assert sum(4 * len(request.seeds) for request in budgets if request.budget == "4s") <= 120
    assert {request.budget for request in budgets} == {"4s"}


def test_precision_has_both_dtypes_of_every_board():
    boards = find_suite("precision").boards
    by_dtype = [
        [(b.fields["task"], str(b.fields["task_args"])) for b in boards if b.fields["dtype"] == d]
        for d in ("float32", "float64")
    ]
    assert by_dtype[0] == by_dtype[1]
    assert len(by_dtype[0]) == 6


def test_papers_uses_the_published_recipes():
    requests = [board.request("m") for board in find_suite("papers").boards]
    assert {(r.recipe, r.budget, str(r.recipe_args)) for r in requests} == {("paper", None, "{}")}
