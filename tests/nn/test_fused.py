"""The fused MLP has the value and the gradient of its operators one by one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench.nn import fused
from iclbench.precision import full_precision

there = pytest.mark.skipif(not fused.HAS_ONEDNN, reason="this build of torch has no oneDNN")


def parts(rows=(3, 5), width=8):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
    x, onto = (torch.randn(*rows, width, requires_grad=True) for _ in range(2))
    return x, layers, onto


def plain(x, layers, onto):
    return onto + layers(x)


def gradients(function, x, layers, onto, weights):
    leaves = [leaf for leaf in (x, onto, *layers.parameters()) if leaf.requires_grad]
    return torch.autograd.grad((function(x, layers, onto) * weights).sum(), leaves)


@there
@pytest.mark.parametrize("rows", [(1,), (7,), (3, 5), (2, 3, 4)])
def test_value_and_gradient_are_those_of_the_operators(rows):
    made = parts(rows)
    weights = torch.randn(*rows, 8)
    with full_precision(torch.float32):
        torch.testing.assert_close(fused.mlp(*made), plain(*made))
        found, expected = gradients(fused.mlp, *made, weights), gradients(plain, *made, weights)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


@there
def test_what_is_frozen_or_not_contiguous_changes_nothing_else():
    x, layers, onto = parts((4, 6))
    layers[0].weight.requires_grad_(False)
    layers[2].bias.requires_grad_(False)
    made = (x.detach()[:, ::2], layers, onto[:, ::2].detach().requires_grad_())
    weights = torch.randn(1, 8).expand(4, 3, 8)
    found, expected = gradients(fused.mlp, *made, weights), gradients(plain, *made, weights)
    assert len(found) == 3
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


@there
def test_it_can_t_be_differentiated_twice():
    x, layers, onto = parts()
    (slope,) = torch.autograd.grad(fused.mlp(x, layers, onto).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@there
def test_what_is_not_a_number_stays_so():
    x, layers, onto = parts()
    layers[0].weight.data[0, 0] = torch.nan
    assert fused.mlp(x, layers, onto).isnan().all()
    assert plain(x, layers, onto).isnan().all()


@there
def test_it_is_for_large_inputs_in_full_float32_and_for_its_layers_alone():
    large, (_, layers, _) = torch.zeros(fused.WORTH_FUSING), parts()
    assert fused.usable(large, layers)
    assert not fused.usable(large[1:], layers)
    assert not fused.usable(large.double(), layers)
    assert not fused.usable(large.to("meta"), layers)
    with torch.autocast("cpu", torch.bfloat16):
        assert not fused.usable(large, layers)
    assert not fused.usable(large, nn.Sequential(layers[0], nn.GELU(), layers[2]))
    assert not fused.usable(large, nn.Sequential(*layers, nn.Dropout()))
    layers[2].register_full_backward_pre_hook(lambda *_: None)
    assert not fused.usable(large, layers)


def test_a_hook_on_a_part_is_seen():
    module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert not fused.watched(module)
    handle = module[1].register_forward_hook(lambda *_: None)
    assert fused.watched(module)
    handle.remove()
    assert not fused.watched(module)
