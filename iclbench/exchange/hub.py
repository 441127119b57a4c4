"""The Hugging Face Hub: what a repository holds, one commit into it, and reading its files.

The address is HF_ENDPOINT's, or huggingface.co. The token comes from HF_TOKEN or from the hub's own
login (`hf auth login`); it is never an argument, and is removed from every message.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..api.errors import IclbenchError, RunError, UsageError, first_line
from ..api.names import visible
from ..console import report
from .packing import CHUNK, Kind, Package

#: Seconds without an answer after which a download fails.
TIMEOUT = 60.0
#: How often a file is asked for that the hub does not give at once, with growing pauses …
TRIES, PAUSE = 5, 1.0
#: … or as long as it says, in seconds: its limits count the requests of five minutes.
LONGEST_WAIT = 330.0
#: Waiting is interrupted so often; a wait of LONG_WAIT is announced.
SLICE, LONG_WAIT = 1.0, 10.0

#: `user/name`; with `datasets/` before it, a dataset. `hub:` says that it is no folder.
_REPOSITORY = re.compile(r"(hub:)?(datasets/)?([\w.-]{1,96}/[\w.-]{1,96})", re.ASCII)


#: How a path of Windows begins.
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class HubFile(NamedTuple):
    """A file of a repository and its size in bytes."""

    path: str
    size: int


class HubState(NamedTuple):
    """A repository: its last commit, its files, and whether only its owner sees it."""

    revision: str
    files: list[HubFile]
    private: bool


def repository(text: str) -> tuple[Kind | None, str] | None:
    """The kind, if the text says it, and `user/name`; None for what is a path.

    A path begins with `.`, `/` or `~`, or has no `/` or several. Raises UsageError for what has
    the form of `user/name` and can't be one, or is a folder here too.
    """
    match = _REPOSITORY.fullmatch(text)
    if _DRIVE.match(text) or text.startswith((".", "/", "~")) or ".." in text:
        return None
    if match is None and text.strip("/").count("/") == 1:
        raise UsageError(f"{text} is not a repository name; for a folder, write ./{text}")
    if match is None:
        return None
    if match[1] is None and Path(text).is_dir():
        raise UsageError(
            f"{text} is a folder here and may be a repository too: write ./{text} for the folder, "
            f"or hub:{text} for the repository"
        )
    return ("dataset" if match[2] else None), match[3]


class Hub:
    """A connection to the hub; every error is one line, without the token."""

    def __init__(self) -> None:
        try:
            import huggingface_hub
        except ImportError:
            raise UsageError("the hub needs huggingface_hub: pip install huggingface_hub") from None
        self.endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        _require_safe(self.endpoint)
        self._announced_until = 0.0
        self._token: str | None = huggingface_hub.get_token()
        # False: never a token other than this one.
        self._api = huggingface_hub.HfApi(endpoint=self.endpoint, token=self._token or False)
        huggingface_hub.utils.disable_progress_bars()

    def require_login(self) -> None:
        """Raise UsageError where there is no token."""
        if not self._token:
            raise UsageError("you are not logged in: run `hf auth login`, or set HF_TOKEN")

    def state(self, kind: Kind, name: str) -> HubState | None:
        """What a repository holds; None if there is none, or none that the user may see."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with self._errors(f"{name} can't be read"):
            try:
                info = self._api.repo_info(name, repo_type=kind, files_metadata=True)
            except RepositoryNotFoundError:
                return None
        files = [HubFile(str(file.rfilename), int(file.size or 0)) for file in info.siblings or ()]
        return HubState(str(info.sha), files, bool(info.private))

    def push(
        self, package: Package, name: str, *, private: bool, deleted: list[str], parent: str | None
    ) -> str:
        """Make one commit; returns its address.

        `parent` is the commit that the repository must still be at; None makes the repository. One
        that somebody has made since is refused, as it may be public. Raises RunError where the hub
        refuses, and UsageError for a file that holds the token.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        self.require_login()
        self._require_no_token(package)
        operations: list[Any] = [CommitOperationDelete(path) for path in deleted]
        for path, content in package.files.items():
            given = content if isinstance(content, bytes) else str(content)
            operations.append(CommitOperationAdd(path, given))
        with self._errors(f"{name} can't be written"):
            if parent is None:
                self._api.create_repo(name, repo_type=package.kind, private=private)
            commit = self._api.create_commit(
                name,
                operations,
                commit_message=f"iclbench: {package.title}",
                repo_type=package.kind,
                parent_commit=parent,
            )
        return str(commit.commit_url)

    def chunks(
        self, kind: Kind, name: str, revision: str, path: str
    ) -> Generator[bytes, None, None]:
        """A file's bytes as they arrive, so that a reader can stop; close it in that case.

        Where the hub has to be asked again, nothing arrives, in empty chunks, until then.
        """
        import huggingface_hub

        with self._errors(f"{name}: {path} can't be read"):
            address = huggingface_hub.hf_hub_url(
                name, path, repo_type=kind, revision=revision, endpoint=self.endpoint
            )
            headers = huggingface_hub.utils.build_hf_headers(token=self._token or False)
            # A redirect to another host is followed without the token.
            options = {"headers": headers, "follow_redirects": True, "timeout": TIMEOUT}
            session = huggingface_hub.get_session()
            for tries_left in reversed(range(TRIES)):
                try:
                    with session.stream("GET", address, **options) as response:
                        if response.is_success:
                            yield from response.iter_bytes(CHUNK)
                            return
                        status = response.status_code
                        wait = _wait_of(status, response.headers)
                except Exception as error:
                    # The class of httpx or of httpx2, as the hub's library has it.
                    if not tries_left or not _has_base(error, "ConnectError"):
                        raise
                    status, wait = 0, 0.0
                if status and (not tries_left or not (status == 429 or status >= 500)):
                    raise RunError(f"{name}: {path} can't be read: HTTP {status}")
                wait = max(wait, PAUSE * 2.0 ** (TRIES - 1 - tries_left))
                self._announce(wait)
                for _ in range(math.ceil(wait / SLICE)):
                    yield b""
                    time.sleep(SLICE)

    def _announce(self, wait: float) -> None:
        """Say that a long wait begins, once for all files that wait."""
        now = time.monotonic()
        if wait >= LONG_WAIT and now > self._announced_until:
            self._announced_until = now + wait
            report(f"{self.endpoint} asks to wait {wait:.0f} s")

    def _require_no_token(self, package: Package) -> None:
        secret = (self._token or "").encode()
        for path in package.files:
            if secret and _contains(package.chunks(path), secret):
                raise UsageError(f"{path} contains your Hub token; nothing was uploaded")

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except IclbenchError:
            raise
        except Exception as error:
            reason = self._reason(error)
            if self._token:
                reason = reason.replace(self._token, "(token)")
            raise RunError(f"{what}: {reason}") from None

    def _reason(self, error: Exception) -> str:
        # The class of httpx or of httpx2, as the hub's library has it.
        if _has_base(error, "TransportError"):
            return f"{self.endpoint} does not answer ({visible(str(error), 200)})"
        cause = f" ({first_line(error.__cause__)})" if error.__cause__ else ""
        return " ".join(f"{first_line(error)}{cause}".split())


def _has_base(error: Exception, name: str) -> bool:
    return any(base.__name__ == name for base in type(error).__mro__)


def _wait_of(status: int, headers: Mapping[str, str]) -> float:
    """The seconds that the hub asks to wait, LONGEST_WAIT at most; 0 if it doesn't say.

    Every answer has `RateLimit: …;r=REQUESTS LEFT;t=SECONDS`, which is the reason for a 429 alone.
    """
    limit = re.search(r"\br=0;t=(\d+)", headers.get("ratelimit", "")) if status == 429 else None
    text = headers.get("retry-after", "") or (str(int(limit[1]) + 1) if limit else "")
    return min(LONGEST_WAIT, float(text)) if text.isdecimal() else 0.0


def _contains(chunks: Iterable[bytes], text: bytes) -> bool:
    """Whether the text is in these bytes, also where it lies across two chunks."""
    end = b""
    for chunk in chunks:
        window = end + chunk
        if text in window:
            return True
        end = window[max(0, len(window) - len(text) + 1) :]
    return False


def _require_safe(endpoint: str) -> None:
    """Raise UsageError for an address that would show the token, or that holds a password."""
    parts = urlsplit(endpoint)
    if parts.username or parts.password:
        raise UsageError("HF_ENDPOINT contains a password; use HF_TOKEN or `hf auth login`")
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise UsageError("HF_ENDPOINT must begin with https://, or be on this machine")
