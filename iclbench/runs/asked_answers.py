"""The file beside a record with what a language model was asked and answered, JSON lines.

The first line names the model; each other line has a question and its answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from ..api.asked import AskedModule
from ..api.errors import RecordError
from ..api.record import Record
from ..api.results import FileReference
from .comparison import Check, same
from .models import Model
from .objects import Objects

#: The most bytes of such a file.
MOST_BYTES = 2**26


def write_answers(models: Sequence[Model], objects: Objects) -> FileReference:
    """Store what the model answered to the questions of an evaluation."""
    module = cast(AskedModule, models[0].module)
    pairs = [{"question": q, "answer": a} for q, a in module.answers.items() if q in module.used]
    lines = [json.dumps(line) for line in [{"model": module.identity}, *pairs]]
    return objects.write(("\n".join(lines) + "\n").encode("ascii"), "jsonl")


def read_answers(record: Record, objects: Objects) -> tuple[str, dict[str, str]] | None:
    """The name of the model and its answers by question; None for a record that has none.

    Raises RecordError for a file that holds anything else.
    """
    if record.answers is None:
        return None
    try:
        text = objects.read(record.answers, MOST_BYTES).decode("ascii")
        first, *rest = [json.loads(line) for line in text.splitlines()]
        answers = {line["question"]: line["answer"] for line in rest}
        known = [first["model"], *answers, *answers.values()]
    except (ValueError, KeyError, TypeError, RecursionError):
        known, rest, answers = [None], [], {}
    if not all(isinstance(part, str) for part in known) or len(answers) != len(rest):
        raise RecordError("its answers are not lines with a question and an answer each")
    return first["model"], answers


def compare_answers_used(record: Record, models: Sequence[Model]) -> list[Check]:
    """A check that every answer of a record is one to a question of its prompts."""
    if record.answers is None:
        return []
    module = cast(AskedModule, models[0].module)
    return [same("questions of its answers", len(module.answers), len(module.used))]
