"""Differences of two rows: which model is better needs more than one trained seed."""

from __future__ import annotations

import pytest

from iclbench import UsageError, compare, run
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.formats import difference

ARGS = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "eval_prompts": 64}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trained row with one seed and one with three, and a solver that is far better."""
    out = tmp_path_factory.mktemp("pairs")
    for seeds in ((0,), (1, 2, 3)):
        run(model="lsa-tokens", **ARGS, seeds=seeds, out=out)
    run(model="least-squares-qr", **ARGS, out=out)
    return out


def test_one_trained_seed_says_of_no_model_that_it_is_better(folder):
    (board,) = leaderboard(folder)
    rows = {(r.spec.origin, len(r.seeds)): r for r in board.records}
    one, three, solver = rows["trained", 1], rows["trained", 3], rows["solver", 1]
    lines = [compare(row, solver).loc["squared_error"] for row in (one, three)]
    assert all(line.p < 0.05 for line in lines)
    assert [line.better for line in lines] == ["", "b"]


def test_a_difference_to_one_seed_has_the_mark_of_one_seed(folder):
    (board,) = leaderboard(folder)
    (row,) = [row for row in board.rows if row.one_seed_above and row.above]
    scale = row.record.ranking.scale
    assert difference(row.above, scale, row.one_seed_above).endswith("] †")
    assert "†" not in difference(row.above, scale)


def test_rows_with_other_targets_on_the_same_draws_are_not_compared(tmp_path):
    args = {"task": "least-squares", "eval_prompts": 16, "out": tmp_path}
    query, weights = (
        run(model="zero", task_args={"dim": 2, "target": target}, **args)
        for target in ("query", "weights")
    )
    assert query.main.digest == weights.main.digest
    with pytest.raises(UsageError, match="their task arguments differ"):
        compare(query, weights)
