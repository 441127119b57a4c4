"""Which record of a model stands on a board of a suite: what a single seed scored decides last."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from iclbench import RecordStore, Suite, run
from iclbench.display.suites import overall_table, suite_parts
from iclbench.display.terminal import print_parts
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.suites import suite_view
from iclbench.leaderboards.suite_score import _representative, score_suite
from iclbench.runs.store import read_record

TRIALS = [{"recipe_args": {"learning_rate": rate}, "score": 1.0} for rate in (1e-3, 1e-2)]
SUITE = Suite(
    name="tiny",
    version=1,
    summary="a board",
    board=({"name": "regression", "task": "least-squares", "chance": "zero", "eval_prompts": 32,
            "task_args": {"dim": 2, "examples": 4}},),
)  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Chance, and a trained row of one seed and of two, by the number of seeds."""
    out, (board,) = tmp_path_factory.mktemp("choice"), SUITE.boards
    run(out=out, **board.request("zero").model_dump())
    for seeds in (1, 2):
        request = board.request("baseconv", recipe="smoke", seeds=seeds)
        run(out=out, **request.model_dump())
    known = [read_record(path) for path in RecordStore(out).paths()]
    return {len(record.spec.seeds): record for record in known}


def validated(name, steps, scores, seeds=2, trials=()):
    """A record of 20 steps with one seed's validation curve."""
    curve = SimpleNamespace(steps=steps, mean=[scores])
    return SimpleNamespace(
        id=name,
        tuning=SimpleNamespace(document={"trials": list(trials)}),
        spec=SimpleNamespace(origin="trained", init=None, seeds=tuple(range(seeds))),
        seeds=[SimpleNamespace(diverged_at=None)] * seeds,
        validation_curve=curve,
        training=SimpleNamespace(steps=20),
        track=None,
        budget=None,
        ranking=SimpleNamespace(better_score="higher"),
    )


def test_a_curve_without_the_last_step_chooses_nothing():
    """Its last point is not compared with the weights, so it could claim anything."""
    claimed = validated("a", [0, 10], [0.0, 30.0])
    worse, better = (validated(n, [0, 20], [0.0, s]) for n, s in (("b", 1.0), ("c", 2.0)))
    assert _representative([claimed, worse, better]) is better
    assert _representative([claimed, worse]) is worse


def test_several_seeds_come_before_one_that_is_tuned_or_better():
    single = validated("a", [0, 20], [0.0, 9.0], seeds=1, trials=TRIALS)
    worse, better = (validated(n, [0, 20], [0.0, s]) for n, s in (("b", 1.0), ("c", 2.0)))
    assert _representative([single, worse, better]) is better
    assert _representative([single]) is single


def test_a_score_of_one_seed_says_so(records, capsys):
    table = score_suite(SUITE, {"regression": [records[0], records[1]]})
    print_parts(suite_parts(table))
    text = capsys.readouterr().out
    assert text.count(") †") == 2
    assert "† one seed" in text
    view, *_ = suite_view(table, Descriptions(print))["tables"][0]["rows"]
    assert view["interval"].endswith("% †")
    both = score_suite(SUITE, {"regression": list(records.values())})
    assert both.entries[0].records["regression"].id == records[2].id
    assert "†" not in overall_table(both).rows[0]["score"].text
