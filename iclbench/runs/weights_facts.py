"""The facts of recorded weights that need no measuring: whose they are, and what is fixed."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..api.architecture import Architecture
from ..api.spec import ResolvedSpec, RunSpec
from ..nn.training_form import tensors_of
from ..plugins import host
from ..precision import DTYPES, full_precision
from ..training.replicas import matching
from .models import built_module
from .plan import Plan

#: At least this part of the weights of two models that start alike differ by more than this part
#: of themselves.
APART, NEARLY = 1e-2, 1e-3
#: Two trained models lie further apart than the smaller of these parts of their weights' norm and
#: of the distance that training moved them.
OF_NORM, OF_MOVED = 0.02, 0.5
#: How many prompts show which buffers training changes.
TRIED = 4

#: Seed → the parameters and buffers of its model.
States = Mapping[int | None, Mapping[str, Tensor]]
#: Seed → its model as it is built, before weights are given to it.
Built = Mapping[int | None, nn.Module]


def built_models(plan: Plan, seeds: Iterable[int | None]) -> Built:
    """The model of each seed before training, without the weights that it may begin with.

    Many seeds of a large model take the memory of all: see `unlike_saved` first.
    """
    return {seed: built_model(plan, seed) for seed in seeds}


def built_model(plan: Plan, seed: int | None) -> nn.Module:
    """The model of one seed before training, without the weights that it may begin with."""
    with full_precision(DTYPES[plan.spec.dtype]):
        return built_module(plan, "initialization", seed or 0)


def is_construction(spec: RunSpec | ResolvedSpec) -> bool:
    """Whether the weights, or those that the training begins with, follow from a formula."""
    architecture: Architecture = host().load("model", spec.model, Architecture)()
    return (spec.init or spec.weights) in architecture.constructions


@dataclass(frozen=True)
class Trained:
    """The trained parameters of one seed, (n,) float64, and what they were before training.

    `start` is None for training that began with given weights.
    """

    seed: int | None
    weights: Tensor
    start: Tensor | None


def trained_models(built: Built, states: States, spec: ResolvedSpec) -> list[Trained]:
    """Every seed's parameters, without frozen ones, which all seeds share.

    `spec` is the record's: the plan to verify a record names no checkpoint.
    """
    models = []
    for seed, state in states.items():
        named = dict(built[seed].named_parameters())
        names = [name for name, parameter in named.items() if parameter.requires_grad]
        names = sorted(set(names) - matching(names, spec.freeze))
        start = None if _begins_elsewhere(spec) else _flat(named, names)
        models.append(Trained(seed, _flat(state, names), start))
    return models


def _begins_elsewhere(spec: ResolvedSpec) -> bool:
    """Whether the models began with given weights, not with those that they are built with."""
    return spec.origin == "loaded" or spec.init is not None


def _flat(state: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    parts = [state[name].detach().double().flatten() for name in names]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def copied_seeds(models: Sequence[Trained]) -> list[int]:
    """The seeds whose trained weights are nearly those of an earlier one.

    Seeds that begin with the same given weights may stay near them.
    """
    copied = []
    for i, model in enumerate(models):
        same = _are_alike if model.start is None else are_copies
        if any(same(model, other) for other in models[:i]):
            copied.append(model.seed or 0)
    return copied


def are_copies(a: Trained, b: Trained) -> bool:
    """Whether two models' weights are nearer to each other than those of two trainings are.

    Hidden units in another order are not recognized. Weights that are not finite are near to none:
    two seeds may both have diverged.
    """
    if a.weights.shape != b.weights.shape:
        return False
    distance = float((a.weights - b.weights).norm())
    norms = [float(model.weights.norm()) for model in (a, b)]
    moved = [float((m.weights - m.start).norm()) for m in (a, b) if m.start is not None]
    return distance <= OF_NORM * min(norms) and all(distance <= OF_MOVED * m for m in moved)


def _are_alike(a: Trained, b: Trained) -> bool:
    """Whether nearly all weights of two models of one shape are nearly equal."""
    size = torch.maximum(a.weights.abs(), b.weights.abs())
    apart = ~((a.weights - b.weights).abs() <= NEARLY * size)
    return int(apart.sum()) < APART * len(size)


def moved_parameters(plan: Plan, states: States) -> list[str]:
    """The frozen parameters of a construction that differ from it."""
    moved = set()
    for seed, state in states.items():
        start = plan.states.get(seed, plan.states.get(None, {}))
        for name in matching(list(state), plan.spec.freeze) & set(start):
            if not torch.equal(start[name].to(state[name].dtype), state[name]):
                moved.add(name)
    return sorted(moved)


def replaced_tensors(built: Built, states: States, spec: ResolvedSpec, plan: Plan) -> list[str]:
    """What no training changes, and yet differs from the model as it is built.

    These are parameters that require no gradient, and buffers, except those that a forward pass in
    training changes, such as running statistics. A causal mask may be such a tensor: weights that
    replaced it would give a model that reads the answers. Of models that start from a checkpoint,
    only buffers that no state dict has are known.
    """
    replaced = set()
    for seed, state in states.items():
        module = built[seed]
        fixed = dict(module.named_buffers(remove_duplicate=False))
        if _begins_elsewhere(spec):
            fixed = {name: fixed[name] for name in fixed.keys() - module.state_dict()}
        else:
            fixed |= {n: p for n, p in module.named_parameters() if not p.requires_grad}
        replaced |= {
            name
            for name, tensor in fixed.items()
            if name in state and not _are_equal(tensor, state[name])
        }
    if replaced and spec.origin == "trained":
        replaced -= _updated_buffers(next(iter(built.values())), plan)
    return sorted(replaced)


def _updated_buffers(module: nn.Module, plan: Plan) -> set[str]:
    """The saved buffers that one forward pass in training changes; those updated later are not."""
    module = copy.deepcopy(module).train()
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    dtype = DTYPES[plan.spec.dtype]
    batch = plan.task.evaluation_batches(TRIED, plan.spec.eval_seed, dtype)[0]
    with torch.random.fork_rng(devices=[]), full_precision(dtype), torch.no_grad():
        module(batch.prompt)
    after, saved = dict(module.named_buffers()), module.state_dict().keys()
    return {
        name
        for name, buffer in before.items()
        if name in saved and not _are_equal(after[name], buffer)
    }


def unlike_saved(built: nn.Module, states: States) -> list[str]:
    """The tensors that the file lacks, or holds in another dtype or shape than a run would.

    What is left out could not be compared, and another dtype may hide another value. `built` is the
    model of any seed.
    """
    return sorted(
        {
            name
            for state in states.values()
            for name, tensor in tensors_of(built).items()
            if name not in state
            or (state[name].dtype, state[name].shape) != (tensor.dtype, tensor.shape)
        }
    )


def _are_equal(built: Tensor, recorded: Tensor) -> bool:
    """Whether two tensors are equal up to the rounding of another processor."""
    return (built.dtype, built.shape) == (recorded.dtype, recorded.shape) and torch.allclose(
        built.detach(), recorded, rtol=1e-5, atol=0.0, equal_nan=True
    )
