"""The HTTP client of the openai grader: bounded responses, and nothing of their headers.

The client of `openai` alone reads and decompresses a response of any size.
"""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Iterator
from typing import Any

import httpx2
from openai import DefaultAsyncHttpxClient

#: The most bytes of a response, as sent and after decompression.
LARGEST_RESPONSE = 256 * 1024
#: The only headers of a response that are used; both say how long to wait.
KEPT_HEADERS = ("retry-after", "retry-after-ms")
#: Loggers that show headers if someone asks them for details.
LOGGERS = ("openai", "httpx2", "httpcore2")


class BodyError(Exception):
    """A response's body is too large or can't be decompressed."""


class BoundedClient(DefaultAsyncHttpxClient):
    """Reads every response up to a limit, whatever its status, and follows no redirect."""

    def __init__(self) -> None:
        super().__init__(follow_redirects=False, headers={"Accept-Encoding": "gzip, deflate"})

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; raises BodyError if the response's body is unusable."""
        response = await super().send(request, **{**options, "stream": True})
        self.cookies.clear()
        try:
            body = await read_bounded(response)
        finally:
            await response.aclose()
        kept = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        return httpx2.Response(
            response.status_code,
            headers={**kept, "content-type": "application/json"},
            content=body,
            request=request,
        )


async def read_bounded(response: httpx2.Response) -> bytes:
    """A streamed response's body, decompressed; raises BodyError."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "", "gzip", "x-gzip", "deflate"}:
        raise BodyError("a response in an unknown compression")
    # 32 more than the largest window: the data say whether they are gzip or zlib.
    inflate = zlib.decompressobj(zlib.MAX_WBITS + 32) if encoding not in {"identity", ""} else None
    body, received = bytearray(), 0
    try:
        async for chunk in response.aiter_raw():
            received += len(chunk)
            room = LARGEST_RESPONSE + 1 - len(body)
            body += inflate.decompress(chunk, room) if inflate else chunk
            if max(received, len(body)) > LARGEST_RESPONSE:
                raise BodyError(f"a response of more than {LARGEST_RESPONSE // 1024} KiB")
    except zlib.error:
        raise BodyError("a response that can't be decompressed") from None
    return bytes(body)


@contextlib.contextmanager
def silent_loggers() -> Iterator[None]:
    """Keep the loggers of the client from showing requests and responses, even for debugging."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.level, logging.WARNING))
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
