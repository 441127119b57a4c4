"""A local stand-in of the Hugging Face Hub's HTTP interface, honest or hostile."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

TOKEN = "hf_very_secret_0123456789"
#: Files that the hub keeps outside git.
LARGE = (".safetensors", ".parquet", ".zst")


@dataclass
class Repository:
    """Files, one commit after another; `sizes` and `endless` are lies about some of them."""

    private: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    endless: set[str] = field(default_factory=set)

    @property
    def revision(self) -> str:
        return hashlib.sha1(repr(self.commits).encode()).hexdigest()


class Hub:
    """The state of the server, and the requests that it got: method, path, authorization."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.refuse: str | None = None
        #: Status and headers of the next answers about files, before the hub gives them.
        self.busy: list[tuple[int, dict[str, str]]] = []
        self.url = ""

    @property
    def writes(self) -> list[str]:
        """The paths of requests that change something."""
        return [path for method, path, _ in self.requests if method != "GET"]


class Handler(BaseHTTPRequestHandler):
    """Answers as the hub does: repositories, uploads, commits, files."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, status: int, content: Any = None, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        data = self.body() if self.command in {"POST", "PUT"} else b""
        self.hub.requests.append((self.command, path, self.headers.get("Authorization")))
        try:
            self.route(path, data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815

    def route(self, path: str, data: bytes) -> None:
        writes = self.command in {"POST", "PUT"}
        if writes and not path.startswith("/store/") and not self.is_owner():
            self.reply(401, {"error": "Invalid username or password."})
        elif writes and self.hub.refuse:
            self.reply(403, {"error": self.hub.refuse})
        elif path == "/api/repos/create":
            self.create(json.loads(data))
        elif path == "/api/validate-yaml":
            self.reply(200, {"errors": [], "warnings": []})
        elif path.startswith("/store/"):
            self.hub.large[path.rsplit("/", 1)[-1]] = data
            self.reply(200, {})
        elif path.endswith(".git/info/lfs/objects/batch"):
            self.batch(json.loads(data))
        elif path.startswith(("/api/models/", "/api/datasets/")):
            self.api(path.removeprefix("/api/"), data)
        elif "/resolve/" in path:
            self.resolve(path)
        else:
            self.reply(404, {"error": "not found"})

    def is_owner(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def create(self, asked: dict[str, Any]) -> None:
        key = (asked.get("type", "model"), f"{asked['organization']}/{asked['name']}")
        prefix = "datasets/" if key[0] == "dataset" else ""
        about = {"url": f"{self.hub.url}/{prefix}{key[1]}", "id": key[1], "name": key[1]}
        if key in self.hub.repositories:
            self.reply(409, {"error": "You already created this repo", **about})
            return
        self.hub.repositories[key] = Repository(asked.get("visibility") == "private")
        self.reply(200, about)

    def batch(self, asked: dict[str, Any]) -> None:
        objects = []
        for wanted in asked["objects"]:
            actions = {"upload": {"href": f"{self.hub.url}/store/{wanted['oid']}", "header": {}}}
            known = wanted["oid"] in self.hub.large
            objects.append(wanted if known else {**wanted, "actions": actions})
        self.reply(200, {"transfer": "basic", "objects": objects})

    def find(self, kind: str, name: str) -> Repository | None:
        repository = self.hub.repositories.get((kind, name))
        if repository is None or (repository.private and not self.is_owner()):
            error = {"error": "Repository not found"}
            self.reply(404, error, X_Error_Code="RepoNotFound", X_Error_Message="not found")
            return None
        return repository

    def api(self, path: str, data: bytes) -> None:
        kind, user, name, *rest = path.split("/")
        repository = self.find(kind.removesuffix("s"), f"{user}/{name}")
        if repository is None:
            return
        if rest[:1] == ["preupload"]:
            files = [
                {"path": f["path"], "shouldIgnore": False,
                 "uploadMode": "lfs" if f["path"].endswith(LARGE) else "regular"}
                for f in json.loads(data)["files"]
            ]  # fmt: skip
            self.reply(200, {"files": files})
        elif rest[:1] == ["commit"]:
            prefix = "datasets/" if kind == "datasets" else ""
            self.commit(repository, f"{self.hub.url}/{prefix}{user}/{name}", data)
        else:
            siblings = [
                {"rfilename": path, "size": repository.sizes.get(path, len(content))}
                for path, content in repository.files.items()
            ]
            self.reply(200, {"id": f"{user}/{name}", "sha": repository.revision, "tags": [],
                             "private": repository.private, "siblings": siblings})  # fmt: skip

    def commit(self, repository: Repository, home: str, data: bytes) -> None:
        items = [json.loads(line) for line in data.splitlines()]
        header = items[0]["value"]
        if header.get("parentCommit") not in {None, repository.revision}:
            self.reply(412, {"error": "A commit has happened since."})
            return
        for item in items[1:]:
            value = item["value"]
            if item["key"] == "deletedFile":
                del repository.files[value["path"]]
            elif item["key"] == "lfsFile":
                repository.files[value["path"]] = self.hub.large[value["oid"]]
            else:
                repository.files[value["path"]] = base64.b64decode(value["content"])
        repository.commits.append(header["summary"])
        address = f"{home}/commit/{repository.revision}"
        self.reply(200, {"commitUrl": address, "commitOid": repository.revision, "success": True})

    def resolve(self, path: str) -> None:
        kind = "dataset" if path.startswith("/datasets/") else "model"
        parts = path.removeprefix("/datasets").split("/")[1:]
        repository = self.find(kind, "/".join(parts[:2]))
        if repository is None:
            return
        name = "/".join(parts[4:])
        if self.hub.busy:
            status, headers = self.hub.busy.pop()
            self.reply(status, {"error": "busy"}, **headers)
            return
        if name in repository.endless:
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            while True:
                self.wfile.write(bytes(2**16))
        if name not in repository.files:
            self.reply(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound")
            return
        self.reply(200, repository.files[name], X_Repo_Commit=repository.revision, ETag='"e"')


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub at 127.0.0.1 until the block ends."""
    hub = Hub()
    handler = type("HubHandler", (Handler,), {"hub": hub})
    server = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 64})
    with server(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        # Clients that hang up are part of the tests; print no traceback.
        http.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        hub.url = f"http://127.0.0.1:{http.server_port}"
        try:
            yield hub
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Hub]:
    """The stand-in as HF_ENDPOINT, with its owner's token in HF_TOKEN."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    # Without it, large files go through a protocol of their own.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", str(tmp_path / "harnesses.json"))
    with serving() as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        # Nothing may go to the real hub, whatever the library asks for on its own.
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        template = served.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        huggingface_hub.close_session()
        yield served
        huggingface_hub.close_session()
