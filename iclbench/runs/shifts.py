"""Evaluating models under shift: on other distributions of prompts than they were trained on.

A model is built again for the shifted prompts and gets the same weights. Where they don't fit, such
as learned positions for longer prompts, the shift is not applicable to the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from ..api.errors import PLUGIN_FAILURES, UsageError, unknown
from ..api.names import visible
from ..api.record import MAIN, Record
from ..api.results import Evaluation
from ..nn.training_form import tensors_of
from ..training.checkpoints import load_state
from .measure import axes_of, measure
from .models import Model, built_module
from .plan import Plan
from .report import evaluation
from .settings import Settings
from .sizes import require_room
from .statistics import summarize_run
from .store import RecordStore

#: The name that stands for every shift that is defined for a task.
ALL = "all"


@dataclass(frozen=True)
class Shifted:
    """What became of each shift, by its name: evaluations, why it doesn't apply, or an error."""

    evaluations: Mapping[str, Evaluation]
    not_applicable: Mapping[str, str]
    failed: Mapping[str, BaseException]


def asked_shifts(plan: Plan) -> list[str]:
    """The names of the shifts that a plan asks for; raises UsageError for an undefined one.

    Also for any of a model that is asked in text, whose answers are those to one set of prompts.
    """
    asked = plan.request.shift
    if not asked:
        return []
    known = plan.task.shifts
    if plan.spec.origin == "asked":
        raise UsageError(f"{plan.spec.model} is asked in text: --shift does not apply")
    named = [name for name in dict.fromkeys(asked) if name != ALL]
    for name in named:
        if name not in known:
            raise unknown("shift", name, list(known))
    if ALL not in asked:
        return named
    if not known:
        raise UsageError(f"task {plan.task.name} has no shifts")
    return list(known)


def shifted_plan(plan: Plan, name: str) -> Plan:
    """The plan with the task's prompts under that shift, and nothing else to measure."""
    task = plan.task.shifted(name)
    require_room(len(task.cases) * plan.spec.eval_prompts, task.signature, f"shift {name}")
    return replace(plan, task=task, metrics=(), grader=None)


def shifted_models(plan: Plan, models: Sequence[Model]) -> list[Model] | str:
    """The models with the same weights on a shifted plan's prompts, or why they can't do them."""
    reason = plan.architecture.supports(plan.task.signature, plan.config)
    if reason is not None:
        return reason
    rebuilt = []
    for model in models:
        try:
            module = built_module(plan, "given")
        except UsageError as error:
            return str(error)
        reason = _misfit(module, model.module)
        if reason is not None:
            return reason
        load_state(module, tensors_of(model.module), "the trained model")
        rebuilt.append(replace(model, module=module))
    return rebuilt


def _misfit(module: nn.Module, trained: nn.Module) -> str | None:
    """The first parameter or buffer of a trained module that does not fit another, or None."""
    now, before = module.state_dict(), trained.state_dict()
    for name in {**before, **now}:
        if name not in now or name not in before:
            return f"only one of both lengths has the parameter {name}"
        if now[name].shape != before[name].shape:
            trained_shape, shape = tuple(before[name].shape), tuple(now[name].shape)
            return f"parameter {name} is {trained_shape}, and these prompts need {shape}"
    return None


def measure_shifts(
    plan: Plan,
    models: Sequence[Model],
    names: Sequence[str],
    settings: Settings,
    device: torch.device,
) -> Shifted:
    """The models' metrics on the prompts of each shift; stores every value.

    A shift that fails takes no other's evaluation with it.
    """
    evaluations, not_applicable, failed = {}, {}, {}
    for name in names:
        try:
            outcome = _measure_shift(shifted_plan(plan, name), models, settings, device)
        except PLUGIN_FAILURES as error:
            failed[name] = error
            continue
        if isinstance(outcome, str):
            not_applicable[name] = visible(outcome, 200)
        else:
            evaluations[name] = outcome
    return Shifted(evaluations, not_applicable, failed)


def _measure_shift(
    shifted: Plan, models: Sequence[Model], settings: Settings, device: torch.device
) -> Evaluation | str:
    """The models' evaluation on a shifted plan's prompts, or why they can't do them."""
    fitting = shifted_models(shifted, models)
    if isinstance(fitting, str):
        return fitting
    measured = measure(shifted, fitting, device, settings.eval_batch)
    axes = axes_of(shifted, fitting[0])
    summary = summarize_run(measured.values, measured.floor_values, axes, shifted.kinds)
    reported = evaluation(shifted, measured, summary, RecordStore(settings.out).objects)
    size = measured.target_size if shifted.task.scales_targets else None
    return reported.model_copy(update={"target_size": size})


def with_shifts(record: Record, shifted: Shifted, command: str) -> Record:
    """A record with further evaluations, and the command that makes it with them."""
    return record.model_copy(
        update={
            "command": command,
            "evaluations": {**record.evaluations, **shifted.evaluations},
            "not_applicable": {**record.not_applicable, **shifted.not_applicable},
        }
    ).sealed()


def present_shifts(record: Record) -> list[str]:
    """The shifts that a record holds already, those included that don't apply to its model."""
    return [name for name in record.evaluations if name != MAIN] + list(record.not_applicable)
