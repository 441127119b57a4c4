"""Adding the answers to the first prompts to a record that was made without them."""

from __future__ import annotations

from pathlib import Path

from ..api.record import MAIN, Record
from ..devices import find_device
from ..precision import DTYPES, full_precision
from .facts import recompute
from .first_answers import as_numbers, first_answers
from .models import given_models
from .shared_prompts import evaluation_parts


def with_answers(path: Path, record: Record, device: str) -> Record:
    """The record in `path`, which `verify` has just found to hold, with answers if it lacks them.

    Models are built again, from their formula or from the record's weights.
    """
    if record.main.answers is not None:
        return record
    plan, on_device = recompute(path, record).evaluation_plan, find_device(device)
    with full_precision(DTYPES[record.spec.dtype]):
        by_seed = {model.seed: model.module.to(on_device).eval() for model in given_models(plan)}
        batches = next(iter(evaluation_parts(plan)[0]))
        answers = first_answers([by_seed[s.seed] for s in record.seeds], batches[0], on_device)
    if answers is None:
        return record
    main = record.main.model_copy(update={"answers": as_numbers(answers)})
    return record.model_copy(update={"evaluations": {**record.evaluations, MAIN: main}}).sealed()
