"""The gallery of studies: the order of a study's figures, and the names of its boards."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.gallery import _board_names, _judged_first


def judgement(record, after_run):
    finding = SimpleNamespace(after_run=after_run, changed="")
    return SimpleNamespace(finding=finding, records=(SimpleNamespace(id=record),))


def test_figures_whose_records_were_judged_by_earlier_criteria_come_first():
    figures = [{"size": name, "values": {name: ""}} for name in ("quick", "paper", "hour")]
    judged = [judgement("quick", True), judgement("quick", True), judgement("hour", False)]
    ordered = _judged_first(figures, judged)
    assert [figure["size"] for figure in ordered] == ["hour", "quick", "paper"]


def test_figures_without_verdicts_keep_their_order():
    figures = [{"size": name, "values": {name: ""}} for name in ("quick", "hour")]
    assert _judged_first(figures, []) == figures


def test_the_boards_of_a_study_are_told_apart_by_what_differs(board):
    about = Descriptions(pytest.fail)
    assert _board_names([board], about) == ["Least squares, float32"]
    row = board.rows[0]
    main = row.record.main
    main = main.model_copy(update={"task_args": {**main.task_args, "dim": 7}})
    record = row.record.model_copy(update={"evaluations": {"main": main}})
    other = replace(board, rows=(replace(row, record=record),))
    assert _board_names([board, other], about) == [
        "Least squares, D\u00a0=\u00a02, float32", "Least squares, D\u00a0=\u00a07, float32",
    ]  # fmt: skip
    spec = row.record.spec.model_copy(update={"dtype": "float64"})
    record = row.record.model_copy(update={"spec": spec})
    double = replace(board, rows=(replace(row, record=record),))
    assert _board_names([board, double], about) == [
        "Least squares, float32", "Least squares, float64",
    ]  # fmt: skip
