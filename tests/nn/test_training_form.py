"""The choice of a training form: which modules are replaced, which forms are refused."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from iclbench import PluginError, TrainingContext
from iclbench.nn.training_form import has_hooks, names_in, training_form

CONTEXT = TrainingContext(torch.device("cpu"), torch.float32, batch_size=4)
LEADING = replace(CONTEXT, replicas="leading")
AT_LAST = replace(CONTEXT, positions=slice(-1, None))


class Fast(nn.Module):
    def __init__(self, paper):
        super().__init__()
        self.paper = paper

    def forward(self, x):
        return nn.functional.linear(x, self.paper.layer.weight, self.paper.layer.bias)


class Paper(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        return self.layer(x)

    def for_training(self, context):
        return None if context.replicas == "leading" or context.positions else Fast(self)


class CopiesAParameter(Paper):
    def for_training(self, context):
        form = Fast(self)
        form.weight = nn.Parameter(self.layer.weight.detach() / 2)
        return form


class ForgetsAParameter(Paper):
    def for_training(self, context):
        form = Fast(self)
        form.paper = nn.Module()
        form.paper.layer = nn.Module()
        form.paper.layer.weight = self.layer.weight
        return form


def test_offered_form_is_used():
    module = Paper()
    form = training_form(module, CONTEXT)
    assert isinstance(form, Fast)
    assert form.paper is module


@pytest.mark.parametrize("module", [nn.Linear(3, 3), Paper()], ids=["no form", "refuses"])
def test_module_without_a_form_takes_no_replicas_or_positions(module):
    assert training_form(module, LEADING) is None
    assert training_form(module, AT_LAST) is None


def test_module_without_a_form_is_returned():
    module = nn.Linear(3, 3)
    assert training_form(module, CONTEXT) is module


@pytest.mark.parametrize(
    "hook", ["forward_pre", "forward", "full_backward_pre", "full_backward"], ids=str
)
def test_module_with_a_hook_on_a_part_is_not_replaced(hook):
    module = Paper()
    handle = getattr(module.layer, f"register_{hook}_hook")(lambda *_: None)
    assert has_hooks(module)
    assert training_form(module, CONTEXT) is module
    assert training_form(module, LEADING) is None
    handle.remove()
    assert not has_hooks(module)
    assert isinstance(training_form(module, CONTEXT), Fast)


def test_overridden_forward_is_not_replaced():
    class Newer(Paper):
        def forward(self, x):
            return 2 * super().forward(x)

    patched = Paper()
    patched.forward = lambda x: x
    for module in (Newer(), patched):
        assert training_form(module, CONTEXT) is module


def test_form_with_another_parameter_is_refused():
    with pytest.raises(PluginError, match=r"CopiesAParameter.for_training: weight of Fast"):
        training_form(CopiesAParameter(), CONTEXT)


def test_form_without_a_parameter_is_refused():
    with pytest.raises(PluginError, match=r"Fast lacks layer.bias, which would get no gradient"):
        training_form(ForgetsAParameter(), CONTEXT)


def test_for_training_with_other_arguments_is_refused():
    class Wrong(Paper):
        def for_training(self):
            return self

    with pytest.raises(PluginError, match=r"`for_training` does not take \(context\)"):
        training_form(Wrong(), CONTEXT)


def test_names_of_the_module_map_to_names_in_the_form():
    module = Paper()
    form = training_form(module, CONTEXT)
    expected = {name: f"paper.{name}" for name in ("layer.weight", "layer.bias", "scale")}
    assert names_in(form, module) == expected
    assert names_in(module, module) == {name: name for name in expected}


def test_form_leaves_state_dict_and_deep_copies_intact():
    module = Paper()
    before = list(module.state_dict())
    form = training_form(module, CONTEXT)
    assert list(module.state_dict()) == before
    twin = copy.deepcopy(form)
    assert twin.paper.layer.weight is not module.layer.weight
    x = torch.randn(2, 3)
    assert torch.equal(twin(x), form(x))


def test_form_in_the_plugin_guide_matches_its_module():
    text = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text("utf-8")
    (code,) = (c for c in re.findall(r"```python\n(.*?)```", text, re.S) if "FastMixer" in c)
    namespace: dict = {}
    exec(compile(code, "plugins.md", "exec"), namespace)
    mixer, x = namespace["MyMixer"](3), torch.randn(2, 5, 3)
    torch.testing.assert_close(training_form(mixer, CONTEXT)(x), mixer(x))
    torch.testing.assert_close(training_form(mixer, AT_LAST)(x), mixer(x)[:, -1:])
    assert training_form(mixer, LEADING) is None
