"""kernels=fla: imported on a GPU only, checked at start-up, refused for float64.

No GPU is needed: `fla` is replaced by modules that loop over positions, and the device check by one
that says yes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import pytest
import torch

from iclbench import (
    Architecture,
    RunError,
    Signature,
    TrainingContext,
    UsageError,
    host,
    training_form,
)
from iclbench.api.prompts import Sequence
from iclbench_recurrent import kernels
from iclbench_recurrent.kernels import KernelMixer

ALONE = TrainingContext(torch.device("cpu"), torch.float32, batch_size=4, length=6)
SIGNATURE = Signature(Sequence, "positions", 6, 3, 1, (5,))
CASES = [
    ("mamba2", {}),
    ("gated-linear-attention", {}),
    ("retention", {}),
    ("delta-net", {}),
    ("delta-net", {"updates": 2, "negative_eigenvalues": True}),
    ("gated-delta-net", {}),
    ("hgrn2", {}),
]
IDS = [f"{name} {args}" for name, args in CASES]


def mixer_of(name, **args):
    architecture = host().load("model", name, Architecture)()
    torch.manual_seed(0)
    config = architecture.Config(layers=2, width=8, **{"kernels": "fla", **args})
    return architecture.build(SIGNATURE, config).blocks[1].mixer


def loop(q, k, v, decay, beta=None, error=0.0):
    """The recurrences in the layout of the kernels, (B, S, heads, d), position by position."""
    assert q.shape == k.shape
    S, outputs = torch.zeros(*k.shape[:1], *k.shape[2:], v.shape[-1]), []
    for t in range(k.shape[1]):
        S = decay[:, t, :, :, None] * S
        key, value = k[:, t, :, :, None], v[:, t, :, None]
        if beta is None:
            S = S + key * value
        else:
            S = S + beta[:, t, :, None, None] * key * (value - key.mT @ S)
        outputs.append((q[:, t, :, None] @ S)[:, :, 0] * (1 + error))
    return torch.stack(outputs, dim=1), S


def check(options):
    assert options == {"scale": 1.0, "initial_state": None, "output_final_state": True}


@pytest.fixture
def fla(monkeypatch):
    """Stand-ins for flash-linear-attention, and the error that they make."""
    error = {"size": 0.0}

    def per_head(q, k, v, g, **options):
        check(options)
        return loop(q, k, v, g[..., None].exp(), error=error["size"])

    def per_key(q, k, v, gk, **options):
        check(options)
        return loop(q, k, v, gk.exp(), error=error["size"])

    def delta(q, k, v, beta, **options):
        check(options)
        return loop(q, k, v, torch.ones(*q.shape[:3], 1), beta, error["size"])

    def gated_delta(q, k, v, g, beta, **options):
        check(options)
        return loop(q, k, v, g[..., None].exp(), beta, error["size"])

    operators = {
        "fla.ops.simple_gla": {"fused_recurrent_simple_gla": per_head},
        "fla.ops.gla": {"fused_recurrent_gla": per_key},
        "fla.ops.delta_rule": {"fused_recurrent_delta_rule": delta},
        "fla.ops.gated_delta_rule": {"chunk_gated_delta_rule": gated_delta},
    }
    for name in ("fla", "fla.ops", *operators):
        module = ModuleType(name)
        vars(module).update(operators.get(name, {}))
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(kernels, "on_gpu", lambda context: True)
    return error


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernels_replace_the_chunked_form_in_training(fla, name, args):
    mixer = mixer_of(name, **args)
    form = training_form(mixer, ALONE)
    assert isinstance(form, KernelMixer)
    x = torch.randn(3, 6, 8)
    torch.testing.assert_close(form(x), mixer(x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernel_that_differs_is_refused(fla, name, args):
    mixer = mixer_of(name, **args)
    # Far larger than rounding, and so that the norm of the heads does not hide it.
    fla["size"] = 1e-3 * torch.arange(mixer.output.in_features // mixer.heads)
    with pytest.raises(
        RunError, match=r"kernels=fla: \w+: the kernel's outputs differ by"
    ) as error:
        training_form(mixer, ALONE)
    assert "\n" not in str(error.value)


def test_kernel_with_a_wrong_gradient_is_refused(fla, monkeypatch):
    module = sys.modules["fla.ops.delta_rule"]
    rule = module.fused_recurrent_delta_rule

    def scaled(q, k, v, beta, **options):
        # The value of v with twice its gradient.
        return rule(q, k, 2 * v - v.detach(), beta, **options)

    monkeypatch.setattr(module, "fused_recurrent_delta_rule", scaled)
    with pytest.raises(RunError, match="the kernel's gradient 3 differ"):
        training_form(mixer_of("delta-net"), ALONE)


def test_kernel_that_fails_is_refused(fla, monkeypatch):
    def fail(*args, **options):
        raise AssertionError("float32 is\nnot supported")

    monkeypatch.setattr(sys.modules["fla.ops.gla"], "fused_recurrent_gla", fail)
    with pytest.raises(RunError, match="fails with AssertionError: float32 is not supported;"):
        training_form(mixer_of("hgrn2"), ALONE)


def test_missing_package_is_one_line(fla, monkeypatch):
    monkeypatch.setitem(sys.modules, "fla.ops.gla", None)
    with pytest.raises(UsageError, match=r"needs fla.ops.gla.fused_recurrent_gla: pip install"):
        training_form(mixer_of("gated-linear-attention"), ALONE)


def test_check_leaves_random_numbers_and_gradients_alone(fla):
    mixer = mixer_of("gated-delta-net")
    before = torch.get_rng_state()
    training_form(mixer, ALONE)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in mixer.parameters())


@pytest.mark.parametrize(
    "changes",
    [{"replicas": "vmapped"}, {"compiled": True}],
    ids=["vmapped", "compiled"],
)
def test_kernels_are_not_used_where_they_cannot_be(fla, changes):
    mixer = mixer_of("retention")
    assert training_form(mixer, replace(ALONE, **changes)) is mixer


def test_native_models_import_nothing(fla):
    mixer = mixer_of("retention", kernels="native")
    assert training_form(mixer, ALONE) is mixer


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_float64_is_refused(device):
    context = replace(ALONE, device=torch.device(device), dtype=torch.float64)
    with pytest.raises(UsageError, match="computes in float32; use kernels=native for float64"):
        training_form(mixer_of("retention"), context)


def test_nothing_is_imported_on_a_cpu(monkeypatch):
    mixer = mixer_of("delta-net")
    monkeypatch.setattr(kernels.importlib, "import_module", pytest.fail)
    assert training_form(mixer, ALONE) is mixer
    assert "fla" not in sys.modules


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernels_match_the_native_form_on_a_gpu(name, args):
    pytest.importorskip("fla")
    context = replace(ALONE, device=torch.device("cuda"), length=100)
    assert isinstance(training_form(mixer_of(name, **args).cuda(), context), KernelMixer)
