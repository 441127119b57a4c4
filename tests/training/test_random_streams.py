"""Random numbers in a forward pass come from one stream per replica."""

from __future__ import annotations

import pytest
import torch
from toys import CPU, Counting, Dropping, Small, loss, stacked

from iclbench.training import random_streams
from iclbench.training.gradients.plain import Plain
from iclbench.training.random_streams import draws_random_numbers, first_states


@pytest.mark.parametrize(("cls", "draws"), [(Dropping, True), (Small, False), (Counting, False)])
def test_random_numbers_in_a_forward_pass_are_detected(cls, draws):
    _, replicas, batch = stacked(cls)
    state, buffers = torch.get_rng_state(), replicas.copy().frozen_and_buffers
    assert draws_random_numbers(replicas, batch) is draws
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in replicas.frozen_and_buffers.items():
        assert torch.equal(value, buffers[name])


def test_replica_draws_the_same_numbers_beside_others():
    _, replicas, batch = stacked(Dropping)
    first = replicas.first()
    replicas.random_states = first_states([7, 8, 9], CPU)
    first.random_states = first_states([7], CPU)
    for _ in range(3):
        losses, gradients = Plain(replicas, loss)(batch)
        alone, gradient = Plain(first, loss)(batch)
        assert torch.equal(losses[0], alone[0])
        assert torch.equal(gradients[0], gradient[0])
    assert not torch.equal(replicas.random_states[0], first_states([7], CPU)[0])
    assert not torch.equal(*first_states([7, 8], CPU))


def test_a_stream_on_a_gpu_holds_the_cpu_s_generator_too(monkeypatch):
    """A module there may draw on the CPU, as layer drop does."""
    on_gpu = [torch.arange(16, dtype=torch.uint8)]
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: on_gpu[0])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: on_gpu.append(state))
    device = torch.device("cuda")
    with torch.random.fork_rng([]):
        state = random_streams._random_state(device)
        expected = torch.rand(3)
        assert not torch.equal(random_streams._random_state(device), state)
        random_streams._set_random_state(device, state)
        assert torch.equal(torch.rand(3), expected)
    assert torch.equal(on_gpu[1], on_gpu[0])
