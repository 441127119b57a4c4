"""A server on this machine that speaks the chat API, and fails in every way that one does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

GRADES = {"grammar": 7, "consistency": 6, "plot": 5, "creativity": 4}


class Reply(NamedTuple):
    """A response: its body (JSON, or bytes as they are), status, headers, and how slow it is."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}
    wait: float = 0.0
    drip: float = 0.0
    cut: bool = False


def completion(content: Any = GRADES, **message: Any) -> dict[str, Any]:
    """The body of a good response; `content` may be text that is no answer."""
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


def error(status: int, code: str | None = None, said: str = "no", **more: Any) -> Reply:
    return Reply({"error": {"message": said, "type": "t", "code": code}}, status, **more)


class Server:
    """What was asked, and what is answered: `answer(number, request)` gives a Reply."""

    def __init__(self, answer: Callable[[int, dict[str, Any]], Reply]) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.times: list[float] = []
        self.under_way = self.most_at_once = 0
        self.lock = threading.Lock()
        self.url = ""

    def script(self, *replies: Reply, then: Reply | None = None) -> None:
        """Give these replies in order, and then the last one again and again."""
        last = then or replies[-1]
        self.answer = lambda number, _: replies[number] if number < len(replies) else last


@contextmanager
def serving(answer: Callable[[int, dict[str, Any]], Reply]) -> Iterator[Server]:
    """A server at 127.0.0.1 until the block ends."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                number = len(server.requests)
                server.requests.append(asked)
                server.headers.append(self.headers)
                server.times.append(time.monotonic())
                server.under_way += 1
                server.most_at_once = max(server.most_at_once, server.under_way)
            reply = server.answer(number, asked)
            time.sleep(reply.wait)
            with server.lock:
                server.under_way -= 1
            try:
                self.reply(reply)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def reply(self, reply: Reply) -> None:
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
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
        # A client that hangs up is no news.
        http.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_port}/v1"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
