"""A model's answer about one completion, usable or failed, and the folder of stored answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iclbench import Config, write_atomically

from .prompt import read_grades


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
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)


class _Envelope(_Lenient):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


def read_body(body: bytes) -> Answer:
    """The answer in the body of a response; if the body is invalid, a failed answer."""
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
    """Stored answers, one file per key; several processes may use it at once."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> Answer | None:
        """The stored answer, or None; a damaged file counts as None."""
        if self._folder is None:
            return None
        try:
            return Answer.model_validate_json(self._path(key).read_bytes())
        except (OSError, ValidationError):
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Store an answer, replacing an earlier one."""
        if self._folder is not None:
            write_atomically(self._path(key), answer.model_dump_json().encode())

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
