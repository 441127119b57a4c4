"""The facts of recorded weights that need no measuring: whose they are, and what is fixed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..api.random import derive_seed
from ..precision import DTYPES, full_precision
from ..training.replicas import matching
from .plan import Plan
from .sizes import bounded_model

#: At least this part of two trained models' weights differ by more than this part of themselves.
APART, NEARLY = 1e-2, 1e-3

#: Seed → the parameters and buffers of its model.
States = Mapping[int | None, Mapping[str, Tensor]]


def copied_seeds(states: States, freeze: tuple[str, ...]) -> list[int]:
    """The seeds whose trained weights are nearly those of an earlier one; all share frozen ones."""
    trained = trained_states(states, freeze)
    return [
        seed or 0
        for i, (seed, state) in enumerate(trained)
        if any(are_alike(state, other) for _, other in trained[:i])
    ]


def trained_states(
    states: States, freeze: tuple[str, ...]
) -> list[tuple[int | None, dict[str, Tensor]]]:
    """Each seed's parameters without the frozen ones."""
    return [
        (seed, {name: state[name] for name in state.keys() - matching(list(state), freeze)})
        for seed, state in states.items()
    ]


def are_alike(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    """Whether nearly all weights of two models are nearly equal, as those of no two seeds are."""
    if {name: t.shape for name, t in a.items()} != {name: t.shape for name, t in b.items()}:
        return False
    pairs = [(a[name].double(), b[name].double()) for name in a]
    # Weights that are not finite are near to none: two seeds may both have diverged.
    near = [(x - y).abs() <= NEARLY * torch.maximum(x.abs(), y.abs()) for x, y in pairs]
    apart = sum(int((~part).sum()) for part in near)
    return apart < APART * sum(x.numel() for x, _ in pairs)


def moved_parameters(plan: Plan, states: States) -> list[str]:
    """The frozen parameters of a construction that differ from it."""
    moved = set()
    for seed, state in states.items():
        start = plan.states.get(seed, plan.states.get(None, {}))
        for name in matching(list(state), plan.spec.freeze) & set(start):
            if not torch.equal(start[name].to(state[name].dtype), state[name]):
                moved.add(name)
    return sorted(moved)


def replaced_tensors(plan: Plan, states: States, from_checkpoint: bool) -> list[str]:
    """What no training changes, and yet differs from the model as it is built.

    These are buffers and parameters that require no gradient. A causal mask may be such a tensor:
    weights that replaced it would give a model that reads the answers. Of models that start from a
    checkpoint, only buffers that no state dict has are known.
    """
    replaced = set()
    for seed, state in states.items():
        module = _built(plan, seed)
        fixed = dict(module.named_buffers(remove_duplicate=False))
        if from_checkpoint:
            fixed = {name: fixed[name] for name in fixed.keys() - module.state_dict()}
        else:
            fixed |= {n: p for n, p in module.named_parameters() if not p.requires_grad}
        replaced |= {
            name
            for name, tensor in fixed.items()
            if name in state and not _are_equal(tensor, state[name])
        }
    return sorted(replaced)


def _built(plan: Plan, seed: int | None) -> nn.Module:
    """A seed's model as it is built, before weights are given to it."""
    with (
        torch.random.fork_rng(devices=[]),
        full_precision(DTYPES[plan.spec.dtype]),
        bounded_model(plan.spec.model),
    ):
        torch.manual_seed(derive_seed("initialization", seed or 0))
        return plan.architecture.build(plan.task.signature, plan.config)


def _are_equal(built: Tensor, recorded: Tensor) -> bool:
    """Whether tensors are equal but for the rounding of another processor."""
    return built.shape == recorded.shape and torch.allclose(
        built.detach().to(recorded.dtype), recorded, rtol=1e-5, atol=0.0, equal_nan=True
    )
