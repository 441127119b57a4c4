"""An answer about one completion, whole or failed, and the folder that keeps answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iclbench import Config, write_atomically

from .prompt import read_grades


class Answer(Config):
    """What came of asking about one completion."""

    content: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    #: Of all answers that it took, those that could not be used too.
    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    failure: str | None = None
    #: Whether the failure is the server's, so that another time may be better.
    may_pass: bool = False

    def grades(self) -> dict[str, float]:
        """The grades; raises ValueError, in a few words, where this answer gives none."""
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
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)


class _Envelope(_Lenient):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


def read_body(body: bytes) -> Answer:
    """The answer in the body of a response; one that is none has a failure that says so."""
    try:
        envelope = _Envelope.model_validate_json(body)
    except ValidationError:
        return Answer(requests=1, failure="no valid response")
    if not envelope.choices:
        return Answer(requests=1, model=envelope.model, failure="no choices in the response")
    choice, usage = envelope.choices[0], envelope.usage or _Usage()
    return Answer(
        content=choice.message.content,
        refusal=choice.message.refusal,
        finish_reason=choice.finish_reason,
        model=envelope.model,
        requests=1,
        prompt_tokens=usage.prompt_tokens or 0,
        answer_tokens=usage.completion_tokens or 0,
    )


class AnswerFolder:
    """Answers by the hash of all that they depend on, one file each, safe for several processes."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> Answer | None:
        """The answer that was kept, if any; a damaged file counts as none."""
        if self._folder is None:
            return None
        try:
            return Answer.model_validate_json(self._path(key).read_bytes())
        except (OSError, ValidationError):
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer; one that was kept before is replaced."""
        if self._folder is not None:
            write_atomically(self._path(key), answer.model_dump_json().encode())

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"


def total(answers: Iterator[Answer]) -> dict[str, Any]:
    """The sums over answers: requests and tokens."""
    names = ("requests", "prompt_tokens", "answer_tokens")
    sums = dict.fromkeys(names, 0)
    for answer in answers:
        for name in names:
            sums[name] += getattr(answer, name)
    return sums
