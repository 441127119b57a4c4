"""The file beside a record with what a language model was asked and answered, JSON lines.

The first line names the model; each other line has a question and its answer, in the order in which
prompts asked them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..api.errors import RecordError
from ..api.record import Record
from .objects import Objects

#: The most bytes of such a file.
MOST_ANSWER_BYTES = 2**26


class Answered(NamedTuple):
    """The name of a model, and its answers by question; without either if it was not asked."""

    model: str
    answers: Mapping[str, str]


def read_answers(record: Record, objects: Objects) -> Answered:
    """The answers of a record; raises RecordError for a file that holds anything else."""
    reference = record.answers
    if reference is None:
        return Answered("", {})
    try:
        if reference.format != "jsonl" or reference.shape is not None:
            raise ValueError(reference)
        text = objects.read(reference, MOST_ANSWER_BYTES).decode("ascii")
        first, *rest = [json.loads(line) for line in text.splitlines()]
        (model,) = _texts(first, "model")
        answers = dict(_texts(line, "question", "answer") for line in rest)
        if len(answers) != len(rest):
            raise ValueError("a question is there twice")
    except (ValueError, TypeError, RecursionError):
        raise RecordError("its answers are not lines with a question and an answer each") from None
    return Answered(model, answers)


def _texts(line: Any, *names: str) -> list[str]:
    """The texts of a line that has these and nothing else; raises ValueError or TypeError."""
    if not isinstance(line, dict) or set(line) != set(names):
        raise TypeError(line)
    texts = [line[name] for name in names]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(line)
    return texts
