"""Costs and budgets of the openai grader."""

from __future__ import annotations

import pytest
from fake_openai import GOOD, STORIES, Reply, completion, grammar_grades

from iclbench import Completion, UsageError

PRICED = {"prompt_price": 2.5, "answer_price": 10.0}


def test_cost_is_estimated_before_and_counted_after(openai_server, make_grader, capsys):
    grader = make_grader(**PRICED)
    estimate = grader.estimate(STORIES)
    grammar_grades(grader)
    cost = grader.report().cost
    assert cost.usd == pytest.approx(6 * (400 * 2.5 + 30 * 10) / 1e6)
    assert cost.usd == pytest.approx(cost.paid_usd)
    assert cost.estimated_usd == pytest.approx(estimate)
    assert cost.usd < estimate < 5 * cost.usd
    said = capsys.readouterr().err
    assert f"6 endings for gpt-4o, up to {estimate:.4f} USD" in said
    assert f"6 answers, {cost.usd:.4f} USD" in said


def test_small_budget_is_refused_before_any_request(openai_server, make_grader):
    with pytest.raises(UsageError, match="--grader-budget: grading would cost up to"):
        make_grader(budget=0.001, **PRICED).grade(STORIES, None)
    long = [Completion("Once. " * 1000, " The end.")]
    grader = make_grader(completions=10, budget=0.03, **PRICED)
    # One costs a little over half a cent; all ten of a run would be too much.
    with pytest.raises(UsageError, match=r"more than 0\.03"):
        grader.grade(long, None)
    with pytest.raises(UsageError, match="prices are not known"):
        make_grader(budget=1.0)
    assert openai_server.requests == []


def test_continued_run_needs_a_budget_for_the_rest_only(openai_server, make_grader, tmp_path):
    grammar_grades(make_grader(), STORIES[:5], tmp_path)
    assert grammar_grades(make_grader(budget=0.006, **PRICED), STORIES, tmp_path) == [7] * 6


def test_uncounted_tokens_are_booked_as_estimated(openai_server, make_grader):
    openai_server.script(Reply({**completion(), "usage": None}))
    grader = make_grader(**PRICED)
    grammar_grades(grader)
    assert grader.report().cost.usd == pytest.approx(grader.estimate(STORIES), rel=1e-3)


def test_budget_is_never_exceeded_when_answers_are_repeated(openai_server, make_grader):
    openai_server.script(Reply(completion("no")))
    grader = make_grader(completions=4, budget=0.03, answers=50, concurrency=4, **PRICED)
    with pytest.raises(UsageError, match="next request might exceed it"):
        grader.grade(STORIES[:4], None)
    each = (400 * 2.5 + 30 * 10) / 1e6
    assert len(openai_server.requests) > 10
    assert len(openai_server.requests) * each <= 0.03


def test_requests_wait_for_a_tight_budget(openai_server, make_grader):
    openai_server.answer = lambda number, request: GOOD._replace(wait=0.05)
    # At a token a byte three requests at once would exceed it; all six together don't.
    grader = make_grader(budget=0.0155, **PRICED)
    assert grammar_grades(grader) == [7] * 6
    assert openai_server.most_at_once <= 2
