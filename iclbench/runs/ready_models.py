"""Trained models that wait for their evaluation, and the file that keeps them if it fails.

The checkpoint of a training is that of all runs which were trained as one program. When some of
them have records, the others won't be trained as that program again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from ..api.config import Config
from ..api.costs import BudgetReport, Operations, ValidationCurve
from ..api.record import Environment, TrainingReport
from ..devices import environment
from ..nn.training_form import tensors_of
from ..training.checkpoints import Checkpoint, load_state, other_code, unusable
from ..training.platforms import differing_names, platform_of, with_moves
from .models import Model


class ReadyModels(NamedTuple):
    """One plan's models, to be evaluated, and how they were trained: None where nothing was.

    `checkpoint` is the file that holds them until they have a record.
    """

    models: list[Model]
    operations: Operations | None
    training: TrainingReport | None = None
    budget: BudgetReport | None = None
    validation_curve: ValidationCurve | None = None
    checkpoint: Path | None = None


#: The reports of ReadyModels, by field.
_REPORTS: dict[str, type[Config]] = {
    "operations": Operations,
    "training": TrainingReport,
    "budget": BudgetReport,
    "validation_curve": ValidationCurve,
}


def keep(ready: ReadyModels, path: Path, code: Mapping[str, str], device: torch.device) -> None:
    """Write models that were trained by `code` on a device, for `kept`."""
    tensors = {
        f"{row}/{name}": tensor
        for row, model in enumerate(ready.models)
        for name, tensor in tensors_of(model.module).items()
    }
    reports = {name: getattr(ready, name) for name in _REPORTS}
    values: dict[str, Any] = {
        "code": code,
        "device": device.type,
        "environment": environment(device).model_dump(mode="json"),
        "models": [[model.seed, model.diverged_at] for model in ready.models],
        **{name: None if r is None else r.model_dump(mode="json") for name, r in reports.items()},
    }
    Checkpoint(tensors, {"kept": values}).save(path)


def kept(
    path: Path, code: Mapping[str, str], device: torch.device, build: Callable[[], nn.Module]
) -> ReadyModels | None:
    """The models in `path`, each loaded into what `build` returns; None for no or another file.

    Raises CheckpointError for a damaged file, or for models of other code or another type of
    device.
    """
    values = Checkpoint.load_values(path).get("kept") if path.exists() else None
    if values is None:
        return None
    if values["code"] != code:
        raise unusable(path, other_code(values["code"], code))
    if values["device"] != device.type:
        raise unusable(path, "was made on another device")
    tensors = Checkpoint.load(path).tensors
    models = []
    for row, (seed, diverged_at) in enumerate(values["models"]):
        prefix = f"{row}/"
        state = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        module = build()
        load_state(module, state, str(path))
        models.append(Model(seed, module, diverged_at))
    reports = {
        name: None if values[name] is None else kind.model_validate(values[name])
        for name, kind in _REPORTS.items()
    }
    training = reports["training"]
    if isinstance(training, TrainingReport):
        before = Environment.model_validate(values["environment"])
        reports["training"] = with_move(training, before, environment(device))
    return ReadyModels(models, **cast(dict[str, Any], reports), checkpoint=path)


def with_move(training: TrainingReport, before: Environment, now: Environment) -> TrainingReport:
    """The report of a training, noting where its record is made on another platform."""
    before_, now_ = (platform_of(m, training.engine, training.replicas) for m in (before, now))
    note = with_moves(training.note, differing_names(before_, now_))
    return training.model_copy(update={"note": note})
