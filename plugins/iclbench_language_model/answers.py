"""Answers stored on this machine, so that an interrupted run does not repeat its questions."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder of stored answers: in $ICLBENCH_CACHE, or in ~/.cache/iclbench."""
    chosen = os.environ.get("ICLBENCH_CACHE")
    return (Path(chosen) if chosen else Path.home() / ".cache" / "iclbench") / "answers"


class AnswerFile:
    """The answers of one model in one setting, a line each; several processes may add some."""

    def __init__(self, setting: str) -> None:
        name = hashlib.sha256(setting.encode()).hexdigest()[:32]
        self.path = cache_folder() / f"{name}.jsonl"
        self._answers: dict[str, str] = {}
        if self.path.is_file():
            for line in self.path.read_text("utf-8", errors="replace").splitlines():
                self._take(line)

    def get(self, question: str) -> str | None:
        """The answer to a question, or None."""
        return self._answers.get(question)

    def put(self, question: str, answer: str) -> None:
        """Store an answer."""
        self._answers[question] = answer
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"question": question, "answer": answer})
        # One write of one line, so that lines of two processes don't mix. It begins with a new one,
        # since a process that was killed may have left a line without an end.
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")

    def _take(self, line: str) -> None:
        try:
            content = json.loads(line)
            question, answer = content["question"], content["answer"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # a line that was cut off
        if isinstance(question, str) and isinstance(answer, str):
            self._answers[question] = answer
