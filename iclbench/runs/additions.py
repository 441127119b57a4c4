"""Adding to a record what was not recorded yet when it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..api.record import MAIN, Record
from ..devices import find_device
from ..precision import DTYPES, full_precision
from .facts import recompute
from .first_answers import as_numbers, first_answers
from .models import Model, given_models
from .plan import Plan
from .shared_prompts import evaluation_parts
from .state_size import state_sizes


def with_additions(path: Path, record: Record, device: str) -> Record:
    """The record in `path`, which `verify` has just found to hold, with what it lacks.

    That is the answers to the first prompts, and the sizes of the state if the model tells them.
    The same record if nothing is added. Models are built again, from their formula or from the
    record's weights.
    """
    if record.main.answers is not None and record.state_sizes is not None:
        return record
    plan = recompute(path, record).evaluation_plan
    with full_precision(DTYPES[record.spec.dtype]):
        return _with_additions(record, plan, find_device(device))


def _with_additions(record: Record, plan: Plan, device: torch.device) -> Record:
    models = given_models(plan)
    added: dict[str, Any] = {}
    sizes = state_sizes(models[0].module, plan.task.signature.length)
    if record.state_sizes is None and sizes is not None:
        added["state_sizes"] = sizes
    answers = None if record.main.answers is not None else _answers(record, plan, models, device)
    if answers is not None:
        main = record.main.model_copy(update={"answers": as_numbers(answers)})
        added["evaluations"] = {**record.evaluations, MAIN: main}
    return record.model_copy(update=added).sealed() if added else record


def _answers(
    record: Record, plan: Plan, models: list[Model], device: torch.device
) -> np.ndarray | None:
    """The models' answers to the first prompts, in the order of the record's seeds."""
    by_seed = {model.seed: model.module.to(device).eval() for model in models}
    with evaluation_parts(plan) as (parts, _):
        batches = next(parts)
    return first_answers([by_seed[s.seed] for s in record.seeds], batches[0], device)
