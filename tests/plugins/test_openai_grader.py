"""The openai grader against a server on this machine that fails in every way that one does."""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import time

import pytest
from fake_openai import GRADES, Reply, completion, error, serving

from iclbench import Completion, RunError, UsageError
from iclbench.api.config import parse_config
from iclbench.runs.grading import Grading, RecordedGrader
from iclbench_graders import prompt
from iclbench_graders.asking import retry_after
from iclbench_graders.openai_grader import OpenAIConfig, OpenAIGrader

SECRET = "sk-very-secret-0123456789"
STORIES = [
    Completion(f"Once there was a fox, number {i}.", f" It slept {i} times.") for i in range(6)
]
GOOD = Reply(completion())


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def server():
    with serving(lambda number, asked: GOOD) as found:
        yield found


@pytest.fixture
def make(server):
    """A grader that asks the server, with short waits."""

    def build(completions=6, budget=None, **args):
        quick = {"base_url": server.url, "backoff": 0.01, "timeout": 30.0, "most_failures": 1.0}
        grader = OpenAIGrader(OpenAIConfig(**{**quick, **args}))
        grader.prepare(completions, budget)
        return grader

    return build


def grades(grader, stories=STORIES, folder=None):
    found = grader.grade(stories, folder)
    assert set(found) == {"grammar", "consistency", "plot", "creativity"}
    return found["grammar"]


def test_grades_come_in_order_with_the_request_as_documented(server, make):
    def by_number(_, asked):
        text = asked["messages"][1]["content"]
        number = int(text.split("number ")[1].split(".")[0])
        return Reply(completion({**GRADES, "grammar": number + 1}), wait=0.1 + 0.1 * (number % 3))

    server.answer = by_number
    grader = make(concurrency=3)
    assert grades(grader) == [1, 2, 3, 4, 5, 6]
    assert 2 <= server.most_at_once <= 3
    asked, headers = server.requests[0], server.headers[0]
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert (asked["model"], asked["temperature"], asked["seed"]) == ("gpt-4o", 0.0, 0)
    assert asked["max_completion_tokens"] == 100
    assert asked["response_format"]["json_schema"]["schema"]["required"] == list(prompt.NAMES)
    (story,) = [s for s in STORIES if s.beginning in asked["messages"][1]["content"]]
    assert story.ending in asked["messages"][1]["content"]
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
def test_an_answer_that_is_no_use_is_asked_for_again_and_then_counts_as_failed(server, make, reply):
    server.script(reply, GOOD, reply)
    grader = make(answers=2, concurrency=1)
    good, failed = grades(grader, STORIES[:2])
    assert good == 7
    assert math.isnan(failed)
    assert len(server.requests) == 4
    report = grader.report()
    assert sum(report.reasons.values()) == 1
    assert report.cost.requests == 4


def test_an_answer_that_was_no_use_is_kept_and_asked_for_again_where_that_is_wanted(
    server, make, tmp_path
):
    server.script(Reply(completion(None, refusal="no")))
    for _ in range(2):
        assert math.isnan(grades(make(answers=2), STORIES[:1], tmp_path)[0])
        assert len(server.requests) == 2
    server.script(GOOD)
    assert grades(make(retry_failed=True), STORIES[:1], tmp_path) == [7]


@pytest.mark.parametrize(
    "content", ['{"grammar": 7.5, "consistency": 1, "plot": 10, "creativity": 2, "why": "…"}']
)
def test_numbers_in_range_are_grades(content):
    assert prompt.read_grades(content)["grammar"] == 7.5


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
def test_what_may_pass_is_tried_again_and_then_fails_without_being_kept(
    server, make, reply, tmp_path
):
    # A second is enough for a good answer, and too short for these.
    limit = 1.0 if reply.wait or reply.drip else 30.0
    server.script(reply, GOOD)
    assert grades(make(timeout=limit), STORIES[:1]) == [7]
    assert len(server.requests) >= 2
    server.requests.clear()
    server.script(reply)
    grader = make(attempts=2, timeout=limit)
    assert math.isnan(grades(grader, STORIES[:1], tmp_path)[0])
    assert len(server.requests) == 2
    assert len(grader.report().reasons) == 1
    server.script(GOOD)
    assert grades(make(), STORIES[:1], tmp_path) == [7]


def test_a_rate_limit_is_honoured_by_all_requests(server, make):
    server.script(error(429, headers={"Retry-After": "0.4"}), GOOD)
    assert grades(make(concurrency=1), STORIES[:3]) == [7, 7, 7]
    assert server.times[1] - server.times[0] >= 0.4


def test_the_wait_that_a_server_asks_for_is_read_in_every_form():
    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 25 < retry_after({"retry-after": date}) <= 30
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    assert retry_after({}) is None


FINAL = {
    "key": (error(401, said=f"Incorrect API key provided: {SECRET}"), "refuses the key"),
    "forbidden": (error(403, said="not in your country"), "HTTP 403: not in your country"),
    "model": (error(404, said="no such model"), "HTTP 404: no such model"),
    "quota": (error(429, "insufficient_quota", "pay first"), "no quota is left"),
    "an hour": (error(429, headers={"Retry-After": "3600"}), "asks to wait 3600 s"),
}


@pytest.mark.parametrize(("reply", "message"), FINAL.values(), ids=FINAL)
def test_what_no_retry_mends_ends_the_run_at_once(server, make, reply, message):
    server.script(reply)
    with pytest.raises(RunError, match=message) as raised:
        make(concurrency=2).grade(STORIES, None)
    assert SECRET not in str(raised.value)
    assert len(server.requests) <= 2


def test_a_server_that_is_not_there_is_said_in_one_line(make):
    grader = make(base_url="http://127.0.0.1:9/v1", attempts=2, most_failures=0.1)
    with pytest.raises(RunError, match=r"2 of 6 endings.*no connection to http://127.0.0.1:9/v1"):
        grader.grade(STORIES, None)


def test_too_many_failures_end_the_run_early(server, make):
    server.script(error(400, said=f"bad parameter {SECRET}"))
    grader = make(completions=100, concurrency=1, most_failures=0.02)
    stories = [Completion("A", str(i)) for i in range(100)]
    with pytest.raises(RunError, match=r"3 of 100 .*3 × HTTP 400: bad parameter"):
        grader.grade(stories, None)
    assert len(server.requests) == 3
    assert SECRET not in json.dumps(grader.raw(stories[0]))


def test_a_run_that_was_cut_off_goes_on_without_paying_again(server, make, tmp_path):
    server.script(*[GOOD] * 4, error(401))
    with pytest.raises(RunError):
        make(concurrency=1).grade(STORIES, tmp_path)
    server.requests.clear()
    server.script(GOOD)
    grader = make()
    assert grades(grader, STORIES, tmp_path) == [7] * 6
    assert len(server.requests) == 2
    cost = grader.report().cost
    assert cost.requests == 6


def test_the_key_of_an_answer_holds_all_that_it_depends_on(server, make, tmp_path, monkeypatch):
    base = make()
    same = make(concurrency=2, timeout=1.0, attempts=2)
    assert base.key(STORIES[0]) == same.key(STORIES[0])
    others = [
        make(model="gpt-4.1"),
        make(temperature=0.5),
        make(temperature=None),
        make(seed=1),
        make(max_tokens=50),
        make(base_url=server.url + "/other"),
    ]
    keys = {base.key(STORIES[0]), base.key(STORIES[1])}
    keys |= {grader.key(STORIES[0]) for grader in others}
    keys.add(base.key(Completion(STORIES[0].beginning + "x", STORIES[0].ending)))
    monkeypatch.setattr(prompt, "DIGEST", "0" * 64)
    keys.add(base.key(STORIES[0]))
    assert len(keys) == 10


def test_one_text_is_asked_about_once_and_a_damaged_file_again(server, make, tmp_path):
    assert grades(make(), [STORIES[0]] * 4, tmp_path) == [7] * 4
    assert len(server.requests) == 1
    (file,) = tmp_path.rglob("*.json")
    file.write_text("{")
    assert grades(make(), STORIES[:1], tmp_path) == [7]
    assert len(server.requests) == 2


PRICED = {"prompt_price": 2.5, "answer_price": 10.0}


def test_the_cost_is_estimated_before_and_counted_after(server, make, capsys):
    grader = make(**PRICED)
    estimate = grader.estimate(STORIES)
    grades(grader)
    cost = grader.report().cost
    assert cost.usd == pytest.approx(6 * (400 * 2.5 + 30 * 10) / 1e6)
    assert cost.usd == pytest.approx(cost.paid_usd)
    assert cost.estimated_usd == pytest.approx(estimate)
    assert cost.usd < estimate < 5 * cost.usd
    said = capsys.readouterr().err
    assert f"6 endings for gpt-4o, up to {estimate:.4f} USD" in said
    assert f"6 answers, {cost.usd:.4f} USD" in said


def test_a_budget_refuses_before_anything_is_spent(server, make):
    with pytest.raises(UsageError, match="--grader-budget: grading would cost up to"):
        make(budget=0.001, **PRICED).grade(STORIES, None)
    long = [Completion("Once. " * 1000, " The end.")]
    grader = make(completions=10, budget=0.03, **PRICED)
    # One costs a little over half a cent; all ten of a run would be too much.
    with pytest.raises(UsageError, match=r"more than 0\.03"):
        grader.grade(long, None)
    with pytest.raises(UsageError, match="prices are not known"):
        make(budget=1.0)
    assert server.requests == []


def test_a_run_that_goes_on_needs_a_budget_for_the_rest_alone(server, make, tmp_path):
    grades(make(), STORIES[:5], tmp_path)
    assert grades(make(budget=0.006, **PRICED), STORIES, tmp_path) == [7] * 6


def test_what_a_server_does_not_count_is_booked_as_estimated(server, make):
    server.script(Reply({**completion(), "usage": None}))
    grader = make(**PRICED)
    grades(grader)
    assert grader.report().cost.usd == pytest.approx(grader.estimate(STORIES), rel=1e-3)


def test_a_budget_is_never_exceeded_even_where_answers_must_be_paid_twice(server, make):
    server.script(Reply(completion("no")))
    grader = make(completions=4, budget=0.03, answers=50, concurrency=4, **PRICED)
    with pytest.raises(UsageError, match="next request might exceed it"):
        grader.grade(STORIES[:4], None)
    each = (400 * 2.5 + 30 * 10) / 1e6
    assert len(server.requests) > 10
    assert len(server.requests) * each <= 0.03


def test_requests_wait_for_a_tight_budget_rather_than_fail(server, make):
    server.answer = lambda number, asked: GOOD._replace(wait=0.05)
    # At a token a byte three requests at once would exceed it; all six together don't.
    grader = make(budget=0.0155, **PRICED)
    assert grades(grader) == [7] * 6
    assert server.most_at_once <= 2


def test_the_key_is_nowhere(server, make, tmp_path, capsys):
    echo = {**GRADES, "headers": f"Bearer {SECRET}"}
    server.script(error(500, said=SECRET), Reply(completion(echo)), error(400, said=SECRET))
    grading = Grading(make(concurrency=1))
    grading.grade(STORIES[:2], tmp_path)
    texts = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    texts += [grading.answers().decode(), grading.report().model_dump_json(), repr(grading.grader)]
    texts += [*capsys.readouterr(), str(grading.grader.config)]
    assert not [text for text in texts if SECRET in text]


@pytest.mark.parametrize(
    ("key", "message"),
    [(None, "OPENAI_API_KEY=…"), ("  ", "OPENAI_API_KEY=…"), ("sk-a\nb", "can't be sent"),
     ("sk-ä", "can't be sent")],
)  # fmt: skip
def test_a_key_that_is_missing_or_can_not_be_sent_is_said_before(monkeypatch, key, message):
    monkeypatch.setenv("OPENAI_API_KEY", key or "")
    if key is None:
        monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match=message) as raised:
        OpenAIGrader(OpenAIConfig()).prepare(1, None)
    assert "sk-" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    ["https://me:pa55@host/v1", "https://host/v1?key=pa55", "pa55", "ftp://pa55", "http://[pa55"],
)
def test_an_address_that_holds_a_secret_or_is_none_is_refused_without_showing_it(url):
    with pytest.raises(UsageError, match="base_url") as raised:
        parse_config(OpenAIConfig, {"base_url": url}, "grader openai")
    assert "pa55" not in str(raised.value)


def test_the_environment_sends_nothing_elsewhere(server, make, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert grades(make(), STORIES[:1]) == [7]


def test_it_works_inside_an_event_loop_too(make):
    async def notebook():
        return grades(make())

    assert asyncio.run(notebook()) == [7] * 6


def test_text_that_can_not_be_encoded_is_graded(make):
    odd = Completion("Once {beginning} {ending} {0}", "a half \ud83d pair </ending>")
    assert grades(make(), [odd]) == [7]
    assert odd.beginning in prompt.messages(odd)[1]["content"]


def test_recorded_answers_are_read_again(server, make):
    server.script(Reply(completion("no")), Reply(completion("no")), GOOD)
    grading = Grading(make(concurrency=1, answers=2))
    found = grading.grade(STORIES, None)
    assert math.isnan(found["plot"][0])
    assert grading.report().failures == 1
    replay = RecordedGrader(OpenAIGrader(OpenAIConfig()), grading.answers())
    again = {name: [] for name in found}
    for part in (STORIES[:2], STORIES[2:]):
        for name, values in replay.grade(part, None).items():
            again[name] += values
    assert {n: v[1:] for n, v in again.items()} == {n: v[1:] for n, v in found.items()}
    assert math.isnan(again["plot"][0])
    assert (replay.same, replay.total) == (6, 6)


def test_the_prompt_is_the_one_that_was_published():
    """A change of the prompt changes this, and makes all grades others: say so in the changelog."""
    assert prompt.DIGEST[:16] == "f5a5d35360e080cf"
