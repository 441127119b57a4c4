"""Requests of the openai grader to a server that fails in every way that a real one does."""

from __future__ import annotations

import asyncio
import email.utils
import itertools
import json
import math
import time

import pytest
from fake_openai import (
    GOOD,
    GRADES,
    SECRET,
    STORIES,
    Reply,
    completion,
    error,
    grammar_grades,
)

from iclbench import Completion, RunError
from iclbench_graders import prompt
from iclbench_graders.asking import retry_after


def test_grades_keep_the_order_and_requests_are_as_documented(openai_server, make_grader):
    def by_number(_, request):
        text = request["messages"][1]["content"]
        number = int(text.split("number ")[1].split(".")[0])
        deadline = time.monotonic() + 20.0
        while openai_server.most_at_once < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        return Reply(completion({**GRADES, "grammar": number + 1}), wait=0.05 * (number % 3))

    openai_server.answer = by_number
    grader = make_grader(concurrency=3)
    assert grammar_grades(grader) == [1, 2, 3, 4, 5, 6]
    assert 2 <= openai_server.most_at_once <= 3
    request, headers = openai_server.requests[0], openai_server.headers[0]
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert (request["model"], request["temperature"], request["seed"]) == ("gpt-4o", 0.0, 0)
    assert request["max_completion_tokens"] == 100
    assert request["response_format"]["json_schema"]["schema"]["required"] == list(prompt.NAMES)
    (story,) = [s for s in STORIES if s.beginning in request["messages"][1]["content"]]
    assert story.ending in request["messages"][1]["content"]
    report = grader.report()
    assert (report.model, report.prompt) == ("gpt-4o-2024-08-06", prompt.DIGEST)
    assert (report.cost.requests, report.cost.prompt_tokens) == (6, 2400)


NONSENSE = {
    "text": "The grammar is 7.",
    "empty": "",
    "nothing": None,
    "fence": f"```json\n{json.dumps(GRADES)}\n```",
    "half": json.dumps(GRADES)[:-8],
    "list": "[7, 7, 7, 7]",
    "missing": '{"grammar": 7, "plot": 5, "creativity": 3}',
    "text number": json.dumps({**GRADES, "plot": "7"}),
    "bool": json.dumps({**GRADES, "plot": True}),
    "null": json.dumps({**GRADES, "plot": None}),
    "too high": json.dumps({**GRADES, "plot": 11}),
    "too low": json.dumps({**GRADES, "plot": 0}),
    "negative": json.dumps({**GRADES, "plot": -3}),
    "not a number": json.dumps({**GRADES, "plot": math.nan}),
    "infinite": json.dumps({**GRADES, "plot": math.inf}),
    "huge": json.dumps(GRADES).replace("5", "1e999"),
}
BAD_BODIES = {
    **{word: Reply(completion(text)) for word, text in NONSENSE.items()},
    "refusal": Reply(completion(None, refusal="I can't do that.")),
    "refusal beside grades": Reply(completion(refusal="I'd rather not.")),
    "cut off": Reply(completion(finish_reason="length")),
    "filtered": Reply(completion(finish_reason="content_filter")),
    "no JSON": Reply(b"<html>busy</html>", headers={"Content-Type": "text/html"}),
    "half a body": Reply(json.dumps(completion()).encode()[:60]),
    "other JSON": Reply([1, 2]),
    "no choices": Reply({**completion(), "choices": []}),
    "empty body": Reply(b""),
    "negative tokens": Reply({**completion(), "usage": {"prompt_tokens": -1}}),
}


@pytest.mark.parametrize("reply", BAD_BODIES.values(), ids=BAD_BODIES)
def test_unusable_answer_is_requested_again_and_then_counts_as_failed(
    openai_server, make_grader, reply
):
    openai_server.script(reply, GOOD, reply)
    grader = make_grader(answers=2, concurrency=1)
    good, failed = grammar_grades(grader, STORIES[:2])
    assert good == 7
    assert math.isnan(failed)
    assert len(openai_server.requests) == 4
    report = grader.report()
    assert sum(report.reasons.values()) == 1
    assert report.cost.requests == 4


def test_unusable_answer_is_stored_and_requested_again_with_retry_failed(
    openai_server, make_grader, tmp_path
):
    openai_server.script(Reply(completion(None, refusal="no")))
    for _ in range(2):
        assert math.isnan(grammar_grades(make_grader(answers=2), STORIES[:1], tmp_path)[0])
        assert len(openai_server.requests) == 2
    openai_server.script(GOOD)
    assert grammar_grades(make_grader(retry_failed=True), STORIES[:1], tmp_path) == [7]


PASSING = {
    "500": error(500),
    "503": error(503),
    "429": error(429, "rate_limit_exceeded"),
    "408": error(408),
    "html error": Reply(b"<html>bad gateway</html>", 502, {"Content-Type": "text/html"}),
    "cut connection": GOOD._replace(cut=True),
    "slow": GOOD._replace(wait=2.0),
    "dripping": GOOD._replace(drip=0.01),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
def test_transient_failure_is_retried_and_never_stored(openai_server, make_grader, reply, tmp_path):
    # Too short for these replies; on a busy machine good ones may need several attempts.
    limit = 0.5 if reply.wait or reply.drip else 30.0
    openai_server.script(reply, GOOD)
    assert grammar_grades(make_grader(timeout=limit, attempts=50), STORIES[:1]) == [7]
    assert len(openai_server.requests) >= 2
    openai_server.requests.clear()
    openai_server.script(reply)
    grader = make_grader(attempts=2, timeout=limit)
    assert math.isnan(grammar_grades(grader, STORIES[:1], tmp_path)[0])
    assert len(openai_server.requests) == 2
    assert len(grader.report().reasons) == 1
    openai_server.script(GOOD)
    assert grammar_grades(make_grader(), STORIES[:1], tmp_path) == [7]


def test_rate_limit_delays_all_requests(openai_server, make_grader):
    openai_server.script(error(429, headers={"Retry-After": "0.4"}), GOOD)
    assert grammar_grades(make_grader(concurrency=1), STORIES[:3]) == [7, 7, 7]
    assert openai_server.times[1] - openai_server.times[0] >= 0.4


def test_retry_after_is_read_in_every_form():
    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 25 < retry_after({"retry-after": date}) <= 30
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    assert retry_after({}) is None


FINAL = {
    "key": (error(401, message=f"Incorrect API key provided: {SECRET}"), "refuses the key"),
    "forbidden": (error(403, message="not in your country"), "HTTP 403: not in your country"),
    "model": (error(404, message="no such model"), "HTTP 404: no such model"),
    "quota": (error(429, "insufficient_quota", "pay first"), "no quota is left"),
    "an hour": (error(429, headers={"Retry-After": "3600"}), "asks to wait 3600 s"),
}


@pytest.mark.parametrize(("reply", "message"), FINAL.values(), ids=FINAL)
def test_permanent_error_stops_the_run(openai_server, make_grader, reply, message):
    openai_server.script(reply)
    with pytest.raises(RunError, match=message) as raised:
        make_grader(concurrency=2).grade(STORIES, None)
    assert SECRET not in str(raised.value)
    assert len(openai_server.requests) <= 2


def test_what_is_under_way_at_a_permanent_error_is_stored(openai_server, make_grader, tmp_path):
    """The server bills it whether anyone waits for it or not."""

    def answer(number, _):
        deadline = time.monotonic() + 20.0
        while openai_server.most_at_once < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
        return error(403, message="no") if number == 0 else Reply(completion(), wait=0.5)

    openai_server.answer = answer
    with pytest.raises(RunError, match="HTTP 403"):
        make_grader(concurrency=6).grade(STORIES, tmp_path)
    assert len(openai_server.requests) == 6
    openai_server.script(GOOD)
    assert grammar_grades(make_grader(), STORIES, tmp_path) == [7] * 6
    assert len(openai_server.requests) == 7


def test_nothing_is_asked_after_a_permanent_error(openai_server, make_grader):
    """Neither by a request that waits for its part of the budget, nor for an unusable answer."""

    def answer(number, _):
        return error(403, message="no") if number == 0 else Reply(completion("?"), wait=0.5)

    openai_server.answer = answer
    grader = make_grader(concurrency=2, answers=5, prompt_price=2.0, answer_price=8.0)
    with pytest.raises(RunError, match="HTTP 403"):
        grader.grade(STORIES, None)
    assert len(openai_server.requests) <= 2


def test_a_request_that_waits_ends_with_a_permanent_error(openai_server, make_grader, tmp_path):
    waiting = error(429, headers={"Retry-After": "250"})
    openai_server.script(waiting, error(403, message="no"))
    begun = time.monotonic()
    with pytest.raises(RunError, match="HTTP 403"):
        make_grader(concurrency=2).grade(STORIES[:2], tmp_path)
    assert time.monotonic() - begun < 60


def test_a_connection_that_breaks_may_have_been_billed(openai_server, make_grader):
    openai_server.script(GOOD._replace(cut=True))
    grader = make_grader(attempts=2, prompt_price=2.0, answer_price=8.0)
    assert math.isnan(grammar_grades(grader, STORIES[:1])[0])
    report = grader.report()
    assert report.cost.paid_usd > 0
    assert "broke" in next(iter(report.reasons))


def test_a_server_that_asks_for_no_wait_gets_growing_pauses(openai_server, make_grader):
    busy = error(503, headers={"Retry-After": "0"})
    openai_server.script(busy, busy, busy, GOOD)
    assert grammar_grades(make_grader(backoff=0.2), STORIES[:1]) == [7]
    times = openai_server.times
    for k, (before, after) in enumerate(itertools.pairwise(times)):
        assert after - before >= 0.1 * 2**k


def test_missing_server_is_a_one_line_error(make_grader):
    grader = make_grader(base_url="http://127.0.0.1:9/v1", attempts=2, most_failures=0.1)
    with pytest.raises(
        RunError, match=r"1 of the run.s 6 endings.*no connection to http://127.0.0.1:9/v1"
    ):
        grader.grade(STORIES, None)


def test_too_many_failures_stop_the_run(openai_server, make_grader):
    openai_server.script(error(400, message=f"bad parameter {SECRET}"))
    grader = make_grader(completions=100, concurrency=1, most_failures=0.02)
    stories = [Completion("A", str(i)) for i in range(100)]
    with pytest.raises(RunError, match=r"3 of the run.s 100 .*3 × HTTP 400: bad parameter"):
        grader.grade(stories, None)
    assert len(openai_server.requests) == 3
    assert SECRET not in json.dumps(grader.raw(stories[0]))


def test_environment_does_not_change_the_address(openai_server, make_grader, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert grammar_grades(make_grader(), STORIES[:1]) == [7]


def test_grading_works_inside_an_event_loop(make_grader):
    async def notebook():
        return grammar_grades(make_grader())

    assert asyncio.run(notebook()) == [7] * 6


def test_text_that_cannot_be_encoded_is_graded(make_grader):
    odd = Completion("Once {beginning} {ending} {0}", "a half \ud83d pair </ending>")
    assert grammar_grades(make_grader(), [odd]) == [7]
    assert odd.beginning in prompt.messages(odd)[1]["content"]
