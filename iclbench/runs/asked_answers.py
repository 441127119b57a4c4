"""Asking a language model: what is refused before, what a record keeps, and what it must hold."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import cast

from ..api.asked import Asked, AskedModule
from ..api.errors import UsageError
from ..api.record import Record
from ..api.results import FileReference
from ..precision import DTYPES
from .comparison import Check
from .models import Model
from .objects import Objects
from .plan import Plan
from .recorded_answers import MOST_ANSWER_BYTES

#: Bytes of an answer's line beside its question, at most about so many.
ANSWER_BYTES = 500


def prepare_asking(plan: Plan) -> None:
    """Raise UsageError for a model that can't be asked, or whose answers no record would hold."""
    if not isinstance(plan.architecture, Asked) or plan.answers is not None:
        return
    plan.architecture.prepare(plan.config)
    prompts = plan.spec.eval_prompts
    batch = plan.task.evaluation_batches(2, plan.spec.eval_seed, DTYPES[plan.spec.dtype])[0]
    questions = plan.architecture.questions(batch.prompt, plan.task.signature, plan.config)
    size = prompts * (max(len(json.dumps(question)) for question in questions) + ANSWER_BYTES)
    if size > MOST_ANSWER_BYTES:
        raise UsageError(
            f"{plan.spec.model}: {prompts:,} questions would be about {size:,} bytes, and a record "
            f"holds {MOST_ANSWER_BYTES:,}; evaluate fewer prompts"
        )


def write_answers(models: Sequence[Model], objects: Objects) -> FileReference:
    """Store what the model answered to the questions of an evaluation."""
    module = cast(AskedModule, models[0].module)
    pairs = [{"question": q, "answer": module.answers[q]} for q in module.used]
    lines = [json.dumps(line) for line in [{"model": module.identity}, *pairs]]
    return objects.write(("\n".join(lines) + "\n").encode("ascii"), "jsonl")


def compare_answers_used(record: Record, models: Sequence[Model]) -> list[Check]:
    """A check that a record's answers are those to its prompts' questions, in their order."""
    if record.answers is None:
        return []
    module = cast(AskedModule, models[0].module)
    recorded, used = list(module.answers), list(module.used)
    pairs = enumerate(itertools.zip_longest(recorded, used), start=1)
    first = next((number for number, (a, b) in pairs if a != b), None)
    computed = f"{len(used):,}" + ("" if first is None else f", others from question {first} on")
    return [Check("questions, in order", f"{len(recorded):,}", computed, first is None)]
