"""The model of a record, to be used in Python."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from ..api.errors import RecordError, UsageError
from ..api.record import Record
from ..precision import DTYPES, full_precision
from .facts import compare_spec, recompute
from .models import given_models
from .plan import Plan
from .store import read_record
from .strangers import TRUSTED, require_harmless


def load_model(
    record: Record | str | Path, seed: int | None = None, *, trusted: bool = False
) -> nn.Module:
    """The model of a record or its path that was evaluated, by default of the first seed.

    It lies on the CPU, in evaluation mode, and maps a prompt of the task to a prediction (B, P, W)
    in the record's dtype. Solvers and constructions are built again. Raises UsageError for a seed
    without a model and for a model that is asked in text, and RecordError for files that are
    missing or were changed, and where the installed code builds another model. Without `trusted`,
    it refuses what `verify` refuses: a record that names files, datasets or code.
    """
    if not isinstance(record, Record):
        record = read_record(record)
    if not trusted:
        require_harmless(record, TRUSTED)
    if record.spec.origin == "asked":
        raise UsageError(f"{record.spec.model} is asked in text: it has no module")
    with full_precision(DTYPES[record.spec.dtype]):
        recomputed = recompute(record.path, record)
        _require_same_model(record, recomputed.plan)
        given = given_models(recomputed.evaluation_plan)
    modules = {model.seed: model.module for model in given}
    chosen = record.seeds[0].seed if seed is None else seed
    if chosen not in modules:
        raise UsageError(f"no model has the seed {seed!r}; known: {', '.join(map(str, modules))}")
    return modules[chosen].eval()


def _require_same_model(record: Record, plan: Plan) -> None:
    """Raise RecordError where defaults have changed that the record's command left open."""
    names = {"spec model_args", "spec weights_args"}
    for check in compare_spec(record, plan):
        if check.name in names and not check.holds:
            raise RecordError(
                f"{record.path}: the installed code builds another model: {check.difference}"
            )
