"""The openai grader: stored answers, secrecy of the key, recorded answers."""

from __future__ import annotations

import math

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

from iclbench import Completion, RunError, UsageError
from iclbench.api.config import parse_config
from iclbench.runs.grading import Grading, RecordedGrader
from iclbench.runs.places import place_of
from iclbench_graders import prompt
from iclbench_graders.openai_grader import OpenAIConfig, OpenAIGrader


def test_interrupted_run_continues_without_paying_again(openai_server, make_grader, tmp_path):
    openai_server.script(*[GOOD] * 4, error(401))
    with pytest.raises(RunError) as refused:
        make_grader(concurrency=1).grade(STORIES, tmp_path)
    assert place_of(refused.value) == ""
    openai_server.requests.clear()
    openai_server.script(GOOD)
    grader = make_grader()
    assert grammar_grades(grader, STORIES, tmp_path) == [7] * 6
    assert len(openai_server.requests) == 2
    cost = grader.report().cost
    assert cost.requests == 6


def test_key_covers_everything_that_an_answer_depends_on(
    openai_server, make_grader, tmp_path, monkeypatch
):
    base = make_grader()
    same = make_grader(concurrency=2, timeout=1.0, attempts=2)
    assert base.key(STORIES[0]) == same.key(STORIES[0])
    others = [
        make_grader(model="gpt-4.1"),
        make_grader(temperature=0.5),
        make_grader(temperature=None),
        make_grader(seed=1),
        make_grader(max_tokens=50),
        make_grader(base_url=openai_server.url + "/other"),
    ]
    keys = {base.key(STORIES[0]), base.key(STORIES[1])}
    keys |= {grader.key(STORIES[0]) for grader in others}
    keys.add(base.key(Completion(STORIES[0].beginning + "x", STORIES[0].ending)))
    monkeypatch.setattr(prompt, "DIGEST", "0" * 64)
    keys.add(base.key(STORIES[0]))
    assert len(keys) == 10


def test_equal_texts_need_one_request_and_a_damaged_file_another(
    openai_server, make_grader, tmp_path
):
    assert grammar_grades(make_grader(), [STORIES[0]] * 4, tmp_path) == [7] * 4
    assert len(openai_server.requests) == 1
    (file,) = tmp_path.rglob("*.json")
    file.write_text("{")
    assert grammar_grades(make_grader(), STORIES[:1], tmp_path) == [7]
    assert len(openai_server.requests) == 2


def test_api_key_is_never_written(openai_server, make_grader, tmp_path, capsys):
    echo = {**GRADES, "headers": f"Bearer {SECRET}"}
    openai_server.script(
        error(500, message=SECRET), Reply(completion(echo)), error(400, message=SECRET)
    )
    grading = Grading(make_grader(concurrency=1))
    grading.grade(STORIES[:2], tmp_path)
    texts = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    texts += [grading.answers().decode(), grading.report().model_dump_json(), repr(grading.grader)]
    texts += [*capsys.readouterr(), str(grading.grader.config)]
    assert not [text for text in texts if SECRET in text]


@pytest.mark.parametrize(
    ("key", "message"),
    [(None, "OPENAI_API_KEY=…"), ("  ", "OPENAI_API_KEY=…"), ("sk-a\nb", "unsupported characters"),
     ("sk-ä", "unsupported characters")],
)  # fmt: skip
def test_missing_or_invalid_api_key_is_refused_early(monkeypatch, key, message):
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
def test_invalid_or_secret_address_is_refused_without_showing_it(url):
    with pytest.raises(UsageError, match="base_url") as raised:
        parse_config(OpenAIConfig, {"base_url": url}, "grader openai")
    assert "pa55" not in str(raised.value)


@pytest.mark.parametrize("url", ["http://host/v1", "https://api.openai.com.host/v1"])
def test_the_key_goes_to_no_server_that_only_arguments_name(url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    grader = OpenAIGrader(OpenAIConfig(base_url=url))
    with pytest.raises(UsageError, match=f"set OPENAI_BASE_URL={url}"):
        grader.prepare(1, None)
    with pytest.raises(UsageError, match="OPENAI_BASE_URL"):
        grader.grade(STORIES, None)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/")
    grader.prepare(1, None)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.9.9.9", "localhost:80", "[::1]:80"])
def test_the_key_may_go_to_this_machine(host, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    grader = OpenAIGrader(OpenAIConfig(base_url=f"http://{host}/v1"))
    assert grader._key() == "sk-of-the-user"


def test_recorded_answers_give_the_same_grades(openai_server, make_grader):
    openai_server.script(Reply(completion("no")), Reply(completion("no")), GOOD)
    grading = Grading(make_grader(concurrency=1, answers=2))
    grades = grading.grade(STORIES, None)
    assert math.isnan(grades["plot"][0])
    assert grading.report().failures == 1
    replay = RecordedGrader(OpenAIGrader(OpenAIConfig()), grading.answers())
    again = {name: [] for name in grades}
    for part in (STORIES[:2], STORIES[2:]):
        for name, values in replay.grade(part, None).items():
            again[name] += values
    assert {n: v[1:] for n, v in again.items()} == {n: v[1:] for n, v in grades.items()}
    assert math.isnan(again["plot"][0])
    assert (replay.same, replay.total) == (6, 6)
