"""Responses that are too large, endless, compressed or slow: bounded, whatever the server sends."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import math
import tracemalloc
import zlib

import pytest
from fake_openai import GOOD, SECRET, STORIES, Reply, completion, error, grammar_grades

from iclbench_graders.client import LARGEST_RESPONSE

BODY = json.dumps(completion()).encode()
#: Megabytes of zeros that a bomb decompresses to.
SIZE = 128


def compressed(body: bytes, encoding: str = "gzip", **more: object) -> Reply:
    return Reply(body, headers={"Content-Encoding": encoding}, **more)


def bomb(wbits: int) -> bytes:
    compressor = zlib.compressobj(1, wbits=wbits)
    return b"".join(compressor.compress(bytes(1 << 20)) for _ in range(SIZE)) + compressor.flush()


@pytest.mark.parametrize(
    "reply",
    [
        compressed(gzip.compress(BODY)),
        compressed(zlib.compress(BODY), "deflate"),
        Reply(BODY + b" " * 100_000),
        Reply(BODY, headers={"Content-Encoding": "identity"}),
    ],
    ids=["gzip", "deflate", "padded", "identity"],
)
def test_a_sound_response_is_read(openai_server, make_grader, reply):
    openai_server.script(reply)
    assert grammar_grades(make_grader(), STORIES[:1]) == [7]
    assert set(openai_server.headers[0]["Accept-Encoding"].split(", ")) == {"gzip", "deflate"}


HOSTILE = {
    "gzip bomb": compressed(bomb(31)),
    "zlib bomb": compressed(bomb(15), "deflate"),
    "bomb in an error": compressed(bomb(31), status=400),
    "endless": Reply(bytes(1 << 16), endless=True),
    "endless compressed": compressed(gzip.compress(b"") * 3000, endless=True),
    "endless error": Reply(bytes(1 << 16), status=500, endless=True),
    "endless and slow": Reply(b" ", endless=True, drip=0.05),
    "long": Reply(BODY + b" " * LARGEST_RESPONSE),
    "not compressed": compressed(BODY),
    "unknown compression": compressed(BODY, "br"),
    "huge header": Reply(BODY, headers={"X-Long": "x" * 1_000_000}),
    "many headers": Reply(BODY, headers={f"X-{i}": "x" * 1000 for i in range(1000)}),
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_response_is_a_failure_in_bounded_memory(openai_server, make_grader, reply):
    assert grammar_grades(make_grader(), STORIES[:1]) == [7]
    openai_server.script(reply)
    slow = reply.drip > 0
    grader = make_grader(attempts=2, timeout=0.5 if slow else 30.0)
    tracemalloc.start()
    try:
        assert math.isnan(grammar_grades(grader, STORIES[:1])[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24e6
    assert sum(grader.report().reasons.values()) == 1
    openai_server.script(reply, GOOD)
    assert grammar_grades(make_grader(timeout=0.5 if slow else 30.0), STORIES[:1]) == [7]


def test_a_redirect_is_not_followed(openai_server, make_grader):
    openai_server.script(Reply(BODY, 307, headers={"Location": openai_server.url + "/elsewhere"}))
    grader = make_grader(attempts=2)
    assert math.isnan(grammar_grades(grader, STORIES[:1])[0])
    assert next(iter(grader.report().reasons)).startswith("HTTP 307")
    assert len(openai_server.requests) == 1


def test_nothing_of_a_response_s_headers_is_logged_kept_or_sent_back(
    openai_server, make_grader, tmp_path, capfd, caplog
):
    caplog.set_level(logging.DEBUG)
    marks = {"Set-Cookie": "a=mark-1; Path=/", "X-Request-Id": "mark-2", "X-Echo": SECRET}
    openai_server.script(error(500, headers=marks), GOOD._replace(headers=marks))
    grader = make_grader()
    grammar_grades(grader, STORIES[:2], tmp_path)
    kept = [file.read_text() for file in tmp_path.rglob("*.json")]
    kept += [*capfd.readouterr(), caplog.text, json.dumps(grader.raw(STORIES[0]))]
    assert not [text for text in kept if "mark-" in text or SECRET in text]
    assert not [headers for headers in openai_server.headers if headers["Cookie"]]


ESCAPED = json.dumps("".join(f"\\u{ord(c):04x}" for c in SECRET))[1:-1].replace("\\\\", "\\")
FORMS = {
    "plain": f'"{SECRET}"',
    "escaped in the body": f'"{ESCAPED}"',
    "escaped in the answer": json.dumps('{"note": "' + ESCAPED + '"}'),
    "base64": json.dumps("Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()),
    "url": json.dumps("?key=" + SECRET.replace("-", "%2D")),
}


@pytest.mark.parametrize("place", ["content", "refusal", "model", "finish_reason", "error"])
@pytest.mark.parametrize("form", FORMS)
def test_the_key_is_removed_from_all_that_is_kept(
    openai_server, make_grader, tmp_path, capfd, form, place
):
    mark = "MARK"
    body = completion("no grades")
    choice = body["choices"][0]
    owner = {"model": body, "finish_reason": choice}.get(place, choice["message"])
    owner[place] = mark
    if place == "error":
        body = {"error": {"message": mark}}
    text = json.dumps(body).replace(f'"{mark}"', FORMS[form])
    openai_server.script(Reply(text.encode(), 400 if place == "error" else 200))
    grader = make_grader(answers=1)
    grammar_grades(grader, STORIES[:1], tmp_path)
    kept = [file.read_text() for file in tmp_path.rglob("*.json")]
    kept += [json.dumps(grader.raw(STORIES[0])), grader.report().model_dump_json()]
    kept += capfd.readouterr()
    if place != "error":
        assert any("(key)" in text for text in kept)
    core = base64.b64encode(SECRET.encode()).decode()[4:20]
    hidden = [text for text in kept if SECRET in text or core in text or "u0073" in text]
    assert hidden == []
