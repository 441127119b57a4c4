"""The file beside a record with what a language model was asked and answered, JSON lines.

The first line names the model; each other line has a question and its answer, in the order in which
prompts asked them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from ..api.asked import Asked, AskedModule
from ..api.errors import RecordError, UsageError
from ..api.record import Record
from ..api.results import FileReference
from ..precision import DTYPES
from .comparison import Check
from .models import Model
from .objects import Objects
from .plan import Plan

#: The most bytes of such a file.
MOST_BYTES = 2**26
#: Bytes of an answer's line beside its question, at most about so many.
ANSWER_BYTES = 500


class Answered(NamedTuple):
    """The name of a model, and its answers by question; without either if it was not asked."""

    model: str
    answers: Mapping[str, str]


def prepare_asking(plan: Plan) -> None:
    """Raise UsageError for a model that can't be asked, or whose answers no record would hold."""
    if not isinstance(plan.architecture, Asked) or plan.answers is not None:
        return
    plan.architecture.prepare(plan.config)
    prompts = plan.spec.eval_prompts
    batch = plan.task.evaluation_batches(2, plan.spec.eval_seed, DTYPES[plan.spec.dtype])[0]
    questions = plan.architecture.questions(batch.prompt, plan.task.signature, plan.config)
    size = prompts * (max(len(json.dumps(question)) for question in questions) + ANSWER_BYTES)
    if size > MOST_BYTES:
        raise UsageError(
            f"{plan.spec.model}: {prompts:,} questions would be about {size:,} bytes, and a record "
            f"holds {MOST_BYTES:,}; evaluate fewer prompts"
        )


def write_answers(models: Sequence[Model], objects: Objects) -> FileReference:
    """Store what the model answered to the questions of an evaluation."""
    module = cast(AskedModule, models[0].module)
    pairs = [{"question": q, "answer": module.answers[q]} for q in module.used]
    lines = [json.dumps(line) for line in [{"model": module.identity}, *pairs]]
    return objects.write(("\n".join(lines) + "\n").encode("ascii"), "jsonl")


def read_answers(record: Record, objects: Objects) -> Answered:
    """The answers of a record; raises RecordError for a file that holds anything else."""
    reference = record.answers
    if reference is None:
        return Answered("", {})
    try:
        if reference.format != "jsonl" or reference.shape is not None:
            raise ValueError(reference)
        text = objects.read(reference, MOST_BYTES).decode("ascii")
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


def compare_answers_used(record: Record, models: Sequence[Model]) -> list[Check]:
    """A check that a record's answers are those to its prompts' questions, in their order."""
    if record.answers is None:
        return []
    module = cast(AskedModule, models[0].module)
    recorded, used = list(module.answers), list(module.used)
    return [Check("questions, in order", len(recorded), len(used), recorded == used)]
