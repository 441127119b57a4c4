"""What models wrote: graded endings, and what language models answered when they were asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...api.names import is_number, visible
from ...api.record import Record
from ...runs.objects import Objects
from ...runs.recorded_answers import read_answers
from ..formats import in_words
from ..row import Row
from .figure import View
from .minus import with_minus

#: Endings of a record's own page, and beginnings of the page on which models are compared.
MOST, MOST_COMPARED = 12, 20
#: Characters of a beginning or an ending.
MOST_TEXT = 1500


def endings(record: Record, objects: Objects) -> list[View]:
    """Each graded ending with its beginning and scores; [] without a grader's file.

    Lines that hold anything else are left out: a record may come from anyone.
    """
    reference = record.grader.answers if record.grader else None
    if reference is None:
        return []
    views = []
    for line in objects.read(reference).decode("utf-8", "replace").splitlines():
        try:
            content = json.loads(line)
            if isinstance(content, dict) and _is_ending(content):
                views.append(_view(content))
        except (ValueError, OverflowError, RecursionError):
            continue
    return views


def _is_ending(content: dict[str, Any]) -> bool:
    texts = (content.get("beginning"), content.get("ending"))
    return all(isinstance(text, str) for text in texts)


def _view(content: dict[str, Any]) -> View:
    scores = content.get("scores")
    pairs = scores.items() if isinstance(scores, dict) else ()
    shown = [
        (in_words(visible(str(name), 40)), with_minus(f"{float(value):.3g}"))
        for name, value in pairs
        if is_number(value)
    ]
    return {
        "beginning": _lines(content["beginning"]),
        "ending": _lines(content["ending"]),
        "scores": shown,
    }


def compared(rows: Sequence[Row], objects: Objects) -> list[View]:
    """The endings of every row for each beginning, the first MOST_COMPARED of them.

    One ending per model and beginning: that of its first seed. [] where only solvers wrote.
    """
    if not any(row.is_trained for row in rows):
        return []
    by_beginning: dict[str, list[View]] = {}
    for row in rows:
        seen: set[str] = set()
        for ending in endings(row.record, objects):
            if ending["beginning"] not in seen:
                seen.add(ending["beginning"])
                entry = {"row": row, "ending": ending["ending"], "scores": ending["scores"]}
                by_beginning.setdefault(ending["beginning"], []).append(entry)
    items = list(by_beginning.items())[:MOST_COMPARED]
    return [{"beginning": beginning, "endings": members} for beginning, members in items]


def first_answers(record: Record, objects: Objects) -> View | None:
    """A language model's name with its first questions and answers; None for any other model.

    They are those of the first prompts, except where two prompts ask the same.
    """
    if record.answers is None:
        return None
    model, answers = read_answers(record, objects)
    first = list(answers.items())[:MOST]
    pairs = [
        _question(question) | {"answer": _lines(answer.rstrip())} for question, answer in first
    ]
    return {
        "name": visible(model, 200),
        "pairs": pairs,
        "count": f"{len(answers):,}",
        "one_per_prompt": len(answers) == record.main.prompts,
    }


def _question(text: str) -> View:
    """A question's earlier part, the number of its lines, and its last example with the query.

    Examples are paragraphs, or lines if there is only one paragraph.
    """
    separator = "\n\n" if "\n\n" in text else "\n"
    parts = text.split(separator)
    earlier, last = separator.join(parts[:-2]), separator.join(parts[-2:])
    return {
        "earlier": _lines(earlier) + ("…" if len(earlier) > MOST_TEXT else ""),
        "earlier_lines": sum(bool(line.strip()) for line in earlier.split("\n")),
        "last": _lines(last[-MOST_TEXT:]),
    }


def _lines(text: str) -> str:
    """The text with its line breaks, and nothing else that a page would not show."""
    return "\n".join(visible(line, MOST_TEXT) for line in text[:MOST_TEXT].split("\n"))
