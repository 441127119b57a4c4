"""Random numbers in a forward pass: one stream of torch's global generators per replica."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from ..api.prompts import Batch, map_tensors
from ..api.random import derive_seed
from .replicas import Replicas


def draws_random_numbers(replicas: Replicas, batch: Batch) -> bool:
    """Whether a forward pass in training mode uses torch's global generators."""
    trial, device = replicas.copy(), replicas.flat.device
    prompt = map_tensors(lambda t: t[0], batch.prompt)
    # A model that draws is recognized by the generator's state, whatever layer draws.
    with torch.no_grad(), forked_generators(device):
        before = _random_state(device)
        trial.predict(0, trial.flat[0], prompt)
        return not torch.equal(before, _random_state(device))


def first_states(seeds: Sequence[int], device: torch.device) -> list[Tensor]:
    """Return the state in which each replica's stream starts."""
    states = []
    for seed in seeds:
        with forked_generators(device):
            seed_generators(derive_seed("forward pass", seed), device)
            states.append(_random_state(device))
    return states


@contextmanager
def random_stream(replicas: Replicas, replica: int) -> Iterator[None]:
    """Draw from one replica's stream, if the replicas have streams."""
    states, device = replicas.random_states, replicas.flat.device
    if states is not None:
        _set_random_state(device, states[replica])
    yield
    if states is not None:
        states[replica] = _random_state(device)


def forked_generators(device: torch.device) -> AbstractContextManager[None]:
    """Restore torch's global generators at the end of a block."""
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed torch's global generators of the CPU and of a device: of those that are forked.

    torch.manual_seed would set the generators of all GPUs.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _random_state(device: torch.device) -> Tensor:
    """The state of the CPU's generator, followed by the device's.

    A module on a GPU may draw on the CPU too, for instance to decide which layers to leave out.
    """
    state = torch.get_rng_state()
    if device.type == "cuda":
        state = torch.cat([state, torch.cuda.get_rng_state(device)])
    return state


def _set_random_state(device: torch.device, state: Tensor) -> None:
    size = len(torch.get_rng_state())
    torch.set_rng_state(state[:size])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[size:], device)
