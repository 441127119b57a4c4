"""Replicas hold the state of all models."""

from __future__ import annotations

import pytest
import torch
from toys import CPU, Counting, Small, loss, stacked

from iclbench import UsageError
from iclbench.training.gradients.plain import Plain
from iclbench.training.replicas import Replicas


def test_frozen_parameters_are_kept_separately():
    modules, _, _ = stacked(Small)
    replicas = Replicas(modules, CPU, freeze=("a.*",))
    assert list(replicas.shapes) == ["b.weight", "b.bias"]
    assert replicas.flat.shape == (3, 7)
    assert set(replicas.frozen_and_buffers) == {"a.weight", "a.bias", "scale"}
    torch.testing.assert_close(replicas.state_dict(1)["a.weight"], modules[1].a.weight.detach())


def test_a_parameter_that_requires_no_gradient_is_frozen():
    modules, _, batch = stacked(Small)
    for module in modules:
        module.a.requires_grad_(False)
    replicas = Replicas(modules, CPU)
    assert list(replicas.shapes) == ["b.weight", "b.bias"]
    assert Plain(replicas, loss)(batch)[1].shape == (3, 7)


@pytest.mark.parametrize(("pattern", "message"), [("c.*", "matches no"), ("*", "nothing to train")])
def test_invalid_freeze_is_refused(pattern, message):
    modules, _, _ = stacked(Small)
    with pytest.raises(UsageError, match=message):
        Replicas(modules, CPU, freeze=(pattern,))


def test_a_state_dict_loads_into_the_module():
    modules, replicas, _ = stacked(Small)
    modules[0].load_state_dict(replicas.state_dict(2))
    torch.testing.assert_close(modules[0].a.weight, modules[2].a.weight)


def test_views_share_memory_and_are_leaves():
    _, replicas, _ = stacked(Small)
    views = replicas.views(slice(1, 3))
    assert views["a.weight"].shape == (2, 6, 4)
    assert all(view.is_leaf and view.requires_grad for view in views.values())
    replicas.flat.zero_()
    assert not any(view.any() for view in views.values())


def test_state_is_loaded_into_the_same_memory():
    _, replicas, _ = stacked(Counting)
    state = {name: value.clone() for name, value in replicas.state().items()}
    addresses = {name: value.data_ptr() for name, value in replicas.state().items()}
    for value in replicas.state().values():
        value.add_(1)
    replicas.load_state(state)
    for name, value in replicas.state().items():
        assert torch.equal(value, state[name])
        assert value.data_ptr() == addresses[name]


def test_copy_has_its_own_buffers_and_random_states():
    _, replicas, _ = stacked(Counting)
    replicas.random_states = [torch.get_rng_state()] * 3
    copied = replicas.copy()
    copied.frozen_and_buffers["norm.running_mean"].add_(1)
    copied.random_states[0] = None
    copied.flat.add_(1)
    assert not torch.equal(copied.flat, replicas.flat)
    assert not replicas.frozen_and_buffers["norm.running_mean"].any()
    assert replicas.random_states[0] is not None


def test_copy_in_another_dtype_converts_real_tensors_only():
    _, replicas, _ = stacked(Counting)
    copied = replicas.copy(torch.float64)
    assert copied.flat.dtype == copied.frozen_and_buffers["scale"].dtype == torch.float64
    assert copied.frozen_and_buffers["norm.num_batches_tracked"].dtype == torch.int64
    assert replicas.flat.dtype == torch.float32
    assert next(replicas.template.parameters()).dtype == torch.float32


def test_first_returns_the_first_replica_only():
    _, replicas, _ = stacked(Counting)
    first = replicas.first()
    assert first.count == len(first.flat) == 1
    for name, value in first.state_dict(0).items():
        assert torch.equal(value, replicas.state_dict(0)[name])
