"""The models of a plan: initial ones to train, and given ones to evaluate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..api.errors import UsageError
from ..api.random import derive_seed, torch_generator
from ..training.checkpoints import load_state
from ..training.replicas import matching
from .causality import require_causal
from .plan import Plan


@dataclass(frozen=True)
class Model:
    """A module with its parameters, and the seed that it comes from."""

    seed: int | None
    module: nn.Module
    diverged_at: int | None = None


def initial_module(plan: Plan, seed: int) -> nn.Module:
    """One seed's model before training: random, or from given weights, perturbed if asked."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("initialization", seed))
        module = plan.architecture.build(plan.task.signature, plan.config)
    if plan.states:
        state = plan.states[seed] if seed in plan.states else plan.states[None]
        load_state(module, state, str(plan.spec.init), partial=plan.partial)
    if plan.spec.perturb:
        noise = torch_generator("cpu", "perturbation", seed)
        frozen = matching([name for name, _ in module.named_parameters()], plan.spec.freeze)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                draw = torch.randn(parameter.shape, generator=noise, dtype=parameter.dtype)
                if name not in frozen:
                    parameter.add_(plan.spec.perturb * draw)
    return module


def given_models(plan: Plan) -> list[Model]:
    """The models of a plan that trains nothing: a solver, a construction, loaded weights."""
    models = []
    states = plan.states or {None: {}}
    for seed, state in sorted(states.items(), key=lambda pair: pair[0] or 0):
        module = plan.architecture.build(plan.task.signature, plan.config)
        if plan.spec.origin != "solver":
            load_state(module, state, str(plan.spec.weights))
        models.append(Model(seed, module))
    require_usable(models[0].module, plan)
    return models


def require_usable(module: nn.Module, plan: Plan) -> None:
    """Refuse a model that reads the answers, or lacks what a metric needs; raises UsageError."""
    require_causal(module, plan.task)
    lacks = plan.task.supports_model(module)
    if lacks is not None:
        raise UsageError(f"{plan.spec.model} can't do {plan.spec.task}: {lacks}")
    for metric in plan.metrics:
        reason = metric.supports_model(module)
        if reason is not None:
            raise UsageError(f"metric {metric.name} does not apply to {plan.spec.model}: {reason}")
