"""A local server with the chat API that can fail in every way that a real one does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from iclbench import Completion
from iclbench_graders.openai_grader import OpenAIConfig, OpenAIGrader

SECRET = "sk-very-secret-0123456789"
STORIES = [
    Completion(f"Once there was a fox, number {i}.", f" It slept {i} times.") for i in range(6)
]
GRADES = {"grammar": 7, "consistency": 6, "plot": 5, "creativity": 4}


class Reply(NamedTuple):
    """A response. The body is JSON data or raw bytes; `wait` and `drip` are seconds.

    An endless one repeats its body until the client hangs up.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}
    wait: float = 0.0
    drip: float = 0.0
    cut: bool = False
    endless: bool = False


def completion(content: Any = GRADES, **message: Any) -> dict[str, Any]:
    """The body of a successful response; `content` is grades or arbitrary text."""
    finish_reason = message.pop("finish_reason", "stop")
    text = content if isinstance(content, str | None) else json.dumps(content)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 400, "completion_tokens": 30, "total_tokens": 430},
    }


def error(status: int, code: str | None = None, message: str = "no", **more: Any) -> Reply:
    """A response with the API's error body."""
    return Reply({"error": {"message": message, "type": "t", "code": code}}, status, **more)


GOOD = Reply(completion())


class Server:
    """The requests received; `answer(number, request)` gives the replies."""

    def __init__(self, answer: Callable[[int, dict[str, Any]], Reply]) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.times: list[float] = []
        self.pending = self.most_at_once = 0
        self.lock = threading.Lock()
        self.url = ""

    def script(self, *replies: Reply) -> None:
        """Give these replies in order, then repeat the last one."""
        self.answer = lambda number, _: replies[min(number, len(replies) - 1)]


def pour(handler: BaseHTTPRequestHandler, body: bytes, pause: float) -> NoReturn:
    """Write a body again and again until the client hangs up, which raises an error."""
    handler.close_connection = True
    handler.end_headers()
    while True:
        handler.wfile.write(body)
        time.sleep(pause)


@contextmanager
def serving(answer: Callable[[int, dict[str, Any]], Reply]) -> Iterator[Server]:
    """A server at 127.0.0.1 until the block ends."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                number = len(server.requests)
                server.requests.append(request)
                server.headers.append(self.headers)
                server.times.append(time.monotonic())
                server.pending += 1
                server.most_at_once = max(server.most_at_once, server.pending)
            reply = server.answer(number, request)
            time.sleep(reply.wait)
            with server.lock:
                server.pending -= 1
            try:
                self.reply(reply)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def reply(self, reply: Reply) -> None:
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            if reply.endless:
                pour(self, body, reply.drip)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if reply.cut:
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
                return
            pieces = [body[i : i + 1] for i in range(len(body))] if reply.drip else [body]
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(reply.drip)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        # Clients that hang up are part of the tests; print no traceback.
        http.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_port}/v1"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that answers well until a test says otherwise; the key is in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with serving(lambda number, request: GOOD) as server:
        yield server


@pytest.fixture
def make_grader(openai_server: Server) -> Callable[..., OpenAIGrader]:
    """Make a prepared grader that asks the server, with short waits."""

    def build(completions: int = 6, budget: float | None = None, **args: Any) -> OpenAIGrader:
        quick = {"base_url": openai_server.url, "backoff": 0.01, "timeout": 30.0}
        grader = OpenAIGrader(OpenAIConfig(**{**quick, "most_failures": 1.0, **args}))
        grader.prepare(completions, budget)
        return grader

    return build


def grammar_grades(
    grader: OpenAIGrader, stories: Sequence[Completion] = STORIES, folder: Path | None = None
) -> list[float]:
    """The grades of one scale, after checking that all four are present."""
    grades = grader.grade(stories, folder)
    assert set(grades) == {"grammar", "consistency", "plot", "creativity"}
    return grades["grammar"]
