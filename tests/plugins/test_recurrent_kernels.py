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
    Signature,
    TrainingContext,
    UsageError,
    host,
    run,
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
    monkeypatch.setattr(kernels, "_PROBLEMS", {})
    return error


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernels_replace_the_chunked_form_in_training(fla, name, args):
    mixer = mixer_of(name, **args)
    form = training_form(mixer, ALONE)
    assert isinstance(form, KernelMixer)
    x = torch.randn(3, 6, 8)
    torch.testing.assert_close(form(x), mixer(x), rtol=1e-4, atol=1e-6)


def assert_native(mixer, capsys, message):
    """One line of standard error says why, once, and the model trains natively."""
    assert training_form(mixer, ALONE) is mixer
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"iclbench: kernels=fla: {type(mixer).__name__} trains natively: ")
    assert message in line
    assert training_form(mixer, replace(ALONE, replicas="vmapped")) is mixer
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernel_that_differs_is_not_used(fla, capsys, name, args):
    fla["size"] = 1e-4
    message = "the kernel's outputs differ by 1.0e-04, more than 1e-05"
    assert_native(mixer_of(name, **args), capsys, message)


@pytest.mark.parametrize(
    ("name", "args"), [("hgrn2", {"heads": 2}), ("delta-net", {"negative_eigenvalues": True})]
)
def test_models_with_the_same_shapes_are_checked_apart(fla, capsys, name, args):
    plain, other = mixer_of(name), mixer_of(name, **args)
    assert [p.shape for p in plain.parameters()] == [p.shape for p in other.parameters()]
    assert isinstance(training_form(plain, ALONE), KernelMixer)
    fla["size"] = 1e-4
    assert_native(other, capsys, "the kernel's outputs differ")


def test_kernel_with_a_wrong_gradient_is_not_used(fla, capsys, monkeypatch):
    module = sys.modules["fla.ops.delta_rule"]
    rule = module.fused_recurrent_delta_rule

    def scaled(q, k, v, beta, **options):
        # The value of v with twice its gradient.
        return rule(q, k, 2 * v - v.detach(), beta, **options)

    monkeypatch.setattr(module, "fused_recurrent_delta_rule", scaled)
    assert_native(mixer_of("delta-net"), capsys, "the kernel's gradients of input 3 differ")


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernels_are_checked_at_one_position(fla, name, args):
    """Decays that change nothing have the gradient 0."""
    form = training_form(mixer_of(name, **args), replace(ALONE, length=1))
    assert isinstance(form, KernelMixer)


def test_kernel_that_fails_is_not_used(fla, capsys, monkeypatch):
    def fail(*args, **options):
        raise AssertionError("float32 is\nnot supported")

    monkeypatch.setattr(sys.modules["fla.ops.gla"], "fused_recurrent_gla", fail)
    message = "fails with AssertionError: float32 is not supported"
    assert_native(mixer_of("hgrn2"), capsys, message)


def test_short_memory_during_the_check_is_no_answer(fla, monkeypatch):
    """It is raised, as in a training, and the kernel is checked again the next time."""
    module, mixer = sys.modules["fla.ops.gla"], mixer_of("hgrn2")

    def full(*args, **options):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(module, "fused_recurrent_gla", full)
        with pytest.raises(torch.OutOfMemoryError):
            training_form(mixer, ALONE)
    assert isinstance(training_form(mixer, ALONE), KernelMixer)


def test_missing_package_is_one_line(fla, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fla.ops.gla", None)
    message = "fla.ops.gla.fused_recurrent_gla is missing: pip install"
    assert_native(mixer_of("gated-linear-attention"), capsys, message)


def test_check_leaves_random_numbers_and_gradients_alone(fla):
    mixer = mixer_of("gated-delta-net")
    before = torch.get_rng_state()
    training_form(mixer, ALONE)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in mixer.parameters())


@pytest.mark.parametrize("changes", [{"replicas": "vmapped"}, {"compiled": True}])
def test_kernels_train_one_replica_at_a_time(fla, changes):
    with pytest.raises(UsageError, match="one replica at a time"):
        training_form(mixer_of("retention"), replace(ALONE, **changes))


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("native", {}), ("fla", {"dtype": torch.float64}), ("fla", {"positions": slice(1, 2)})],
)
def test_native_form_elsewhere(fla, kind, changes):
    mixer = mixer_of("retention", kernels=kind)
    form = training_form(mixer, replace(ALONE, **changes))
    assert form is (None if "positions" in changes else mixer)


def test_engine_chooses_the_kernel(fla, monkeypatch, capsys, tmp_path):
    """Of several replicas too, in training alone, and with the result of the native form."""
    calls = []
    operators = sys.modules["fla.ops.delta_rule"]
    rule = operators.fused_recurrent_delta_rule

    def counted(*args, **options):
        calls.append(torch.is_grad_enabled())
        return rule(*args, **options)

    monkeypatch.setattr(operators, "fused_recurrent_delta_rule", counted)
    results = {}
    for kind in ("fla", "native"):
        record = run(
            model="delta-net", model_args={"kernels": kind}, task="least-squares", seeds=2,
            task_args={"dim": 2, "examples": 4}, recipe="smoke", eval_prompts=64, out=tmp_path,
        )  # fmt: skip
        results[kind] = [seed["squared_error"].mean for seed in record.main.seeds]
        if kind == "fla":
            assert record.training.engine == "threaded"
            assert "one replica at a time" in capsys.readouterr().err
            # 20 steps of 2 replicas at least, and no evaluation.
            assert len(calls) > 40
            assert all(calls)
            calls.clear()
    assert not calls
    assert results["fla"] == pytest.approx(results["native"], rel=1e-3)


def test_float64_is_refused(tmp_path):
    with pytest.raises(UsageError, match="computes in float32; use kernels=native for float64"):
        run(
            model="retention", model_args={"kernels": "fla"}, task="least-squares",
            recipe="smoke", dtype="float64", out=tmp_path,
        )  # fmt: skip


def test_nothing_is_imported_on_a_cpu(monkeypatch):
    mixer = mixer_of("delta-net")
    monkeypatch.setattr(kernels.importlib, "import_module", pytest.fail)
    assert training_form(mixer, ALONE) is mixer
    assert "fla" not in sys.modules


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_kernels_match_the_native_form_on_a_gpu(name, args, capsys):
    pytest.importorskip("fla")
    context = replace(ALONE, device=torch.device("cuda"), length=100)
    form = training_form(mixer_of(name, **args).cuda(), context)
    if name == "gated-delta-net":  # its only kernel with a gradient may round to fewer digits
        assert isinstance(form, KernelMixer) or "trains natively" in capsys.readouterr().err
    else:
        assert isinstance(form, KernelMixer)
