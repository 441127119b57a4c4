"""A model's answer about one completion, usable or failed, and the folder of stored answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iclbench import Config, write_atomically

from .prompt import read_grades

#: The longest text of an answer that is kept, in characters; grades need a hundred.
LONGEST_TEXT = 2000
#: The longest name or reason that is kept, in characters.
LONGEST_NAME = 200
#: The most tokens that a server may count for one answer.
MOST_TOKENS = 10**9
#: The largest stored file in bytes, and the most files of one of the 256 folders.
LARGEST_FILE, MOST_FILES_OF_FOLDER = 64 * 1024, 400


class Answer(Config):
    """The outcome of asking about one completion."""

    content: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    #: Requests and tokens include those of earlier, unusable answers.
    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    failure: str | None = None
    #: Whether the failure is the server's, so that a later run may succeed.
    may_pass: bool = False

    def without(self, redact: Callable[[str], str]) -> Answer:
        """The answer with every text redacted."""
        texts = {name: value for name, value in self if isinstance(value, str)}
        return self.model_copy(update={name: redact(text) for name, text in texts.items()})

    def grades(self) -> dict[str, float]:
        """The grades by name; raises ValueError with a short reason if the answer has none."""
        if self.failure is not None:
            raise ValueError(self.failure)
        if self.refusal:
            raise ValueError("refused")
        if self.finish_reason == "content_filter":
            raise ValueError("stopped by a content filter")
        if self.finish_reason == "length":
            raise ValueError("cut off")
        if not self.content:
            raise ValueError("empty")
        return read_grades(self.content)


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Message(_Lenient):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _Message
    finish_reason: str | None = None


class _Usage(_Lenient):
    prompt_tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)
    completion_tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)


class _Envelope(_Lenient):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


def read_body(body: bytes, redact: Callable[[str], str]) -> Answer:
    """The answer in the body of a response; if the body is invalid, a failed answer.

    What is kept is bounded and holds no key: `redact` sees the text after its JSON was read, so
    that no escape hides the key from it.
    """
    try:
        envelope = _Envelope.model_validate_json(body)
    except ValidationError:
        return Answer(requests=1, failure="no valid response")
    model = _short(envelope.model)
    if not envelope.choices:
        answer = Answer(requests=1, model=model, failure="no choices in the response")
        return answer.without(redact)
    choice, usage = envelope.choices[0], envelope.usage or _Usage()
    content, refusal = choice.message.content, choice.message.refusal
    too_long = max(len(content or ""), len(refusal or "")) > LONGEST_TEXT
    answer = Answer(
        content=None if too_long else content,
        refusal=None if too_long else refusal,
        finish_reason=_short(choice.finish_reason),
        model=model,
        failure="too long" if too_long else None,
        requests=1,
        prompt_tokens=usage.prompt_tokens or 0,
        answer_tokens=usage.completion_tokens or 0,
    )
    return answer.without(redact)


def _short(name: str | None) -> str | None:
    return shown(name) if name is not None and len(name) <= LONGEST_NAME else None


def shown(text: str) -> str:
    """Text of a server on one line, without control characters, cut to the longest name."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:LONGEST_NAME]


class AnswerFolder:
    """Stored answers, one file per key; several processes may use it at once.

    When a folder is full, the oldest answer in it makes room.
    """

    def __init__(self, folder: Path | None, redact: Callable[[str], str]) -> None:
        self._folder, self._redact = folder, redact

    def get(self, key: str) -> Answer | None:
        """The stored answer, or None; a damaged file counts as None."""
        if self._folder is None:
            return None
        path = self._path(key)
        try:
            if not path.is_file() or path.stat().st_size > LARGEST_FILE:
                return None
            # Earlier versions may have stored a key.
            return Answer.model_validate_json(path.read_bytes()).without(self._redact)
        except (OSError, ValidationError):
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Store an answer, replacing an earlier one."""
        if self._folder is not None:
            path = self._path(key)
            write_atomically(path, answer.model_dump_json().encode())
            files = list(path.parent.glob("*.json"))
            if len(files) > MOST_FILES_OF_FOLDER:
                # Another process may do the same.
                with contextlib.suppress(FileNotFoundError):
                    min(files, key=lambda file: file.stat().st_mtime_ns).unlink()

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"


def total(answers: Iterator[Answer]) -> dict[str, Any]:
    """Sum requests and tokens over answers."""
    names = ("requests", "prompt_tokens", "answer_tokens")
    sums = dict.fromkeys(names, 0)
    for answer in answers:
        for name in names:
            sums[name] += getattr(answer, name)
    return sums
