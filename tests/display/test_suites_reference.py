"""A board of a suite whose named reference has no record."""

from __future__ import annotations

from iclbench import Suite, run
from iclbench.display.suites import overall_table, suite_parts
from iclbench.display.table import Table
from iclbench.leaderboards.suite_score import score_suite

BOARD = {"name": "emoji", "task": "imagenet", "eval_prompts": 16, "chance": "class-frequency",
         "reference": "logistic-regression"}  # fmt: skip


def test_it_is_in_no_mean_until_then_and_says_so(tmp_path):
    suite = Suite(name="tiny", version=1, summary="a board", board=(BOARD,))
    (board,) = suite.boards
    models = ("class-frequency", "nearest-class-mean", "logistic-regression")
    records = [run(out=tmp_path, **board.request(model).model_dump()) for model in models]
    note = "not in the mean until logistic-regression has a record, which is 1: emoji"
    for known, is_marked in ((records[:2], True), (records, False)):
        table = score_suite(suite, {"emoji": known})
        assert (note in overall_table(table).notes) == is_marked
        tables = [part for part in suite_parts(table) if isinstance(part, Table)]
        (shown,) = [part for part in tables if part.title.startswith("emoji")]
        assert ("not in the mean" in shown.title) == is_marked
