"""Trained models that wait for their evaluation, and the file that keeps them if it fails.

The checkpoint of a training is that of all runs which were trained as one program. When some of
them have records, the others won't be trained as that program again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import nn

from ..api.config import Config
from ..api.costs import BudgetReport, Operations, ValidationCurve
from ..api.record import TrainingReport
from ..training.checkpoints import Checkpoint, load_state, tensors_of, unusable
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


def keep(ready: ReadyModels, path: Path, code: str, device: str) -> None:
    """Write models that were trained by `code` on a type of device, for `kept`."""
    tensors = {
        f"{row}/{name}": tensor
        for row, model in enumerate(ready.models)
        for name, tensor in tensors_of(model.module).items()
    }
    reports = {name: getattr(ready, name) for name in _REPORTS}
    values: dict[str, Any] = {
        "code": code,
        "device": device,
        "models": [[model.seed, model.diverged_at] for model in ready.models],
        **{name: None if r is None else r.model_dump(mode="json") for name, r in reports.items()},
    }
    Checkpoint(tensors, {"kept": values}).save(path)


def kept(path: Path, code: str, device: str, build: Callable[[], nn.Module]) -> ReadyModels | None:
    """The models in `path`, each loaded into what `build` returns; None for no or another file.

    Raises CheckpointError for a damaged file, or for models of other code or another device.
    """
    values = Checkpoint.load_values(path).get("kept") if path.exists() else None
    if values is None:
        return None
    if values["code"] != code:
        raise unusable(path, "was made by other code")
    if values["device"] != device:
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
    return ReadyModels(models, **cast(dict[str, Any], reports), checkpoint=path)
