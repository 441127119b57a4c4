"""The models of a plan: initial ones to train, given ones to evaluate, and their weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..api.asked import AskedModule
from ..api.errors import UnsupportedError, UsageError, given_reason
from ..api.random import derive_seed, torch_generator
from ..nn.training_form import tensors_of
from ..training.checkpoints import load_state, weights_bytes
from ..training.replicas import matching
from .causality import require_causal
from .honesty import find_lower_precision
from .inspection import find_problem, predict_otherwise
from .plan import Plan
from .sizes import bounded_model


@dataclass(frozen=True)
class Model:
    """A module with its parameters, the seed it was trained with, and the step it diverged at."""

    seed: int | None
    module: nn.Module
    diverged_at: int | None = None


def built_module(plan: Plan, *draws: str | int) -> nn.Module:
    """The plan's model as its architecture builds it; `draws` name the random numbers it may take.

    They are the same in every process, and the caller's generator stays as it was.
    """
    with torch.random.fork_rng(devices=[]), bounded_model(plan.spec.model):
        torch.manual_seed(derive_seed(*draws))
        return plan.architecture.build(plan.task.signature, plan.config)


def initial_module(plan: Plan, seed: int) -> nn.Module:
    """One seed's model before training: random or from given weights, perturbed if requested."""
    module = built_module(plan, "initialization", seed)
    if plan.states:
        state = plan.states[seed] if seed in plan.states else plan.states[None]
        load_state(module, state, str(plan.spec.init), partial=plan.partial)
    if plan.spec.perturb:
        noise = torch_generator("cpu", "perturbation", seed)
        frozen = matching([name for name, _ in module.named_parameters()], plan.spec.freeze)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                # Frozen parameters draw too, so that freezing doesn't change the others' noise.
                draw = torch.randn(parameter.shape, generator=noise, dtype=parameter.dtype)
                if name not in frozen:
                    parameter.add_(plan.spec.perturb * draw)
    return module


def given_models(plan: Plan) -> list[Model]:
    """The models of a plan that trains nothing: solved, constructed, loaded, or asked."""
    models = []
    states = plan.states or {None: {}}
    for seed, state in sorted(states.items(), key=lambda item: item[0] or 0):
        module = built_module(plan, "given")
        if plan.spec.origin not in {"solver", "asked"}:
            load_state(module, state, str(plan.spec.weights))
        if plan.answers is not None and isinstance(module, AskedModule):
            module.remember(plan.answers)
        models.append(Model(seed, module))
    # A language model sees the text of a prompt alone, and is asked nothing for a trial.
    if plan.spec.origin != "asked":
        require_usable(models[0].module, plan)
    return models


def require_usable(module: nn.Module, plan: Plan) -> None:
    """Raise UsageError for a model whose predictions are unusable, or that reads the answers.

    Also for one that lacks what the run measures.
    """
    problem = find_problem(module, plan.task, initial=plan.spec.origin == "trained")
    if problem is not None:
        raise UsageError(f"{plan.spec.model} can't do {plan.spec.task}: {problem}")
    if plan.spec.dtype == "float64":
        problem = find_lower_precision(module, plan.task)
        if problem is not None:
            raise UnsupportedError(f"{plan.spec.model} can't run in float64: {problem}")
    if plan.spec.origin == "trained":
        _require_whole_state(module, plan)
    require_causal(module, plan.task)
    supported = plan.task.supports_model(module)
    reason = given_reason(supported, f"supports_model() of {plan.spec.task}")
    if reason is not None:
        raise UnsupportedError(f"{plan.spec.model} can't do {plan.spec.task}: {reason}")
    for metric in plan.metrics:
        supported = metric.supports_model(module)
        reason = given_reason(supported, f"supports_model() of metric {metric.name}")
        if reason is not None:
            raise UsageError(f"metric {metric.name} does not apply to {plan.spec.model}: {reason}")


def _require_whole_state(module: nn.Module, plan: Plan) -> None:
    """Raise UsageError for a model that also keeps random numbers in other attributes.

    All seeds would train with those of the first, and be evaluated with others.
    """
    other = built_module(plan, "another initialization")
    load_state(other, tensors_of(module), "its own state")
    if predict_otherwise(module, other, plan.task):
        raise UsageError(
            f"{plan.spec.model} keeps numbers outside its parameters and buffers: with the same "
            "weights, models of two seeds predict otherwise; use register_buffer"
        )


def saved_weights(plan: Plan, models: list[Model]) -> bytes | None:
    """The weights of all models as a safetensors file, to be kept with the record.

    None for a solver or a construction, which can be built again.
    """
    if plan.spec.origin not in {"trained", "loaded"}:
        return None
    states = {model.seed: tensors_of(model.module) for model in models}
    return weights_bytes(states, plan.spec.model, plan.spec.model_args)
