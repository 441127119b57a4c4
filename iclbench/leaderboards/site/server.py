"""Serve a live site on this machine alone: files of the site, and an event when it changes."""

from __future__ import annotations

import html
import mimetypes
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from ...api.errors import UsageError, reason_of
from ...console import report
from .live import LiveSite

#: The only address that is bound.
ADDRESS = "127.0.0.1"
#: Where pages listen for changes, and seconds between signs of life.
EVENTS, ALIVE = "/events", 10.0
#: Pages load nothing from elsewhere; `connect-src` is for the events.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


class Server(ThreadingHTTPServer):
    """Serves a live site to this machine alone; raises UsageError for a port that is taken."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, site: LiveSite, port: int) -> None:
        self.site = site
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"port {port} can't be used ({reason}); port 0 takes any free one"
            ) from None

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Report the error of a request in one line; a browser that went away is no error."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            report(f"a request failed: {reason_of(error)}")


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for files of the site, by their exact names, and for the events."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "iclbench", ""
    #: Seconds that a client may be silent before a request.
    timeout = 60

    def do_GET(self) -> None:
        """Send a file, a page that waits, or the events."""
        self._answer()

    def do_HEAD(self) -> None:
        """Send the headers that GET would."""
        self._answer()

    def _answer(self) -> None:
        # A name that an attacker's DNS resolves to this machine has another Host.
        port = self.server.server_port
        if self.headers.get("Host", "") not in {f"{ADDRESS}:{port}", f"localhost:{port}"}:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, b"unknown host\n", "text/plain")
            return
        path = unquote(urlsplit(self.path).path, errors="replace")
        if path == EVENTS:
            self._send_events()
            return
        name = path.removeprefix("/") or "index.html"
        site = self.server.site
        # Only names of the site's own files are known, so no path leads out of it.
        file = site.files.get(name)
        if file is not None:
            try:
                data = file.read_bytes()
            except OSError:  # replaced by a newer site meanwhile
                data = None
            if data is not None:
                self._send(HTTPStatus.OK, data, _type(name))
                return
        if name == "index.html" and not site.files:
            self._send(HTTPStatus.OK, _waiting(site), "text/html; charset=utf-8")
        else:
            self._send(HTTPStatus.NOT_FOUND, b"there is no such page\n", "text/plain")

    def _send(self, status: HTTPStatus, data: bytes, kind: str) -> None:
        self.send_response(status)
        self._end_headers(kind, len(data))
        if self.command != "HEAD":
            self.wfile.write(data)

    def _end_headers(self, kind: str, length: int | None) -> None:
        headers = {
            "Content-Type": kind,
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send_events(self) -> None:
        """Send the site's version, and again whenever it changes, until the client goes."""
        self.send_response(HTTPStatus.OK)
        self._end_headers("text/event-stream", None)
        version, site = -1, self.server.site
        try:
            while self.command != "HEAD":
                now = site.wait_for_change(version, ALIVE)
                line = ": alive\n\n" if now == version else f"data: {now}\n\n"
                self.wfile.write(line.encode())
                self.wfile.flush()
                version = now
        except (ConnectionError, TimeoutError):
            # The page was closed, which only a write finds out: no failure of the server.
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Say nothing: a request is no news."""


def _type(name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if name.endswith(".js"):
        kind = "text/javascript"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def _waiting(site: LiveSite) -> bytes:
    """The first page while there is no sound record; it loads itself again."""
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in site.problems)
    state = "The pages are being built." if site.version == 0 else "There are no pages yet."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>iclbench</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta http-equiv="refresh" content="2">'
        '<link rel="icon" href="data:,"></head>'
        f"<body><h1>iclbench view</h1><p>{state} This page reloads every two seconds.</p>"
        f"<ul>{lines}</ul></body></html>"
    ).encode()
