"""A model that claims float64 and computes in float32 inside is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from iclbench import ConformanceError, Solver, UsageError, check_architecture, load_task, run
from iclbench.precision import default_dtype
from iclbench.runs.honesty import LARGEST_DIFFERENCE, PERTURBATION, find_lower_precision
from iclbench_transformer.architecture import Transformer

TASK = load_task("least-squares", dim=3, examples=6)
STORIES = load_task("stories", length=12, beginning=4, endings=0)


def by_operators(x, weight):
    return (x.float() @ weight.float()).to(x.dtype)


def by_fft(x, weight):
    return torch.fft.irfft(torch.fft.rfft(x.float() @ weight.float()), n=weight.shape[1]).to(x)


def by_an_opaque_kernel(x, weight):
    product = x.detach().numpy().astype(np.float32) @ weight.detach().numpy().astype(np.float32)
    return torch.from_numpy(product.astype(np.float64)).to(x)


def with_a_constant(x, weight):
    return x @ weight * torch.tensor(0.1, dtype=torch.float32)


def with_a_mask(x, weight):
    """Constants that are exact in any dtype."""
    mask = torch.tensor([0.0, -torch.inf, 0.125, 1000.0], dtype=torch.float32)
    return x @ weight * mask[2] + mask[0]


def in_its_dtype(x, weight):
    return x @ weight


class Mixer(nn.Module):
    """Replaces attention by one product."""

    def __init__(self, width, product):
        super().__init__()
        self.weight, self.product = nn.Parameter(torch.randn(width, width)), product

    def forward(self, x):
        return self.product(x, self.weight)


def model(task, product):
    torch.manual_seed(0)
    architecture = Transformer()
    architecture.mixer = lambda width, length, causal, config: Mixer(width, product)
    config = Transformer.Config(layers=1, width=8, init_std=0.5)
    with default_dtype(torch.float64):
        return architecture.build(task.signature, config)


@pytest.mark.parametrize("task", [TASK, STORIES], ids=["numbers", "ids"])
@pytest.mark.parametrize(
    ("product", "message"),
    [
        (by_operators, "_to_copy in float32 while the run is in float64"),
        (by_fft, "_to_copy in float32"),
        (with_a_constant, "mul with a tensor in float32 while the run is in float64"),
        (by_an_opaque_kernel, f"input changes by {PERTURBATION:.0e} of its size"),
    ],
)
def test_lower_precision_inside_is_noticed(task, product, message):
    assert message in str(find_lower_precision(model(task, product), task))


@pytest.mark.parametrize("task", [TASK, STORIES], ids=["numbers", "ids"])
@pytest.mark.parametrize("product", [in_its_dtype, with_a_mask])
def test_float64_is_no_alarm(task, product):
    assert find_lower_precision(model(task, product), task) is None


def test_a_constant_of_a_solver_is_noticed(provide, tmp_path):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([0.1], dtype=torch.float32))

        def forward(self, prompt):
            return self.scale * prompt.y.mean(dim=1, keepdim=True)

    class ScaledSolver(Solver):
        name = "scaled"

        def supports(self, signature, config):
            return None

        def build(self, signature, config):
            return Scaled()

    provide("model", "scaled", ScaledSolver)
    spec = {"model": "scaled", "task": "least-squares", "eval_prompts": 8, "out": tmp_path}
    with pytest.raises(UsageError, match="mul with a tensor in float32 while the run is in"):
        run(**spec, dtype="float64")
    assert run(**spec, dtype="float32").spec.dtype == "float32"
    with pytest.raises(ConformanceError, match="not fit for float64: its scale is float32"):
        check_architecture(ScaledSolver(), TASK, ScaledSolver.Config())


def test_the_model_itself_is_not_changed():
    module = model(TASK, in_its_dtype)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    find_lower_precision(module, TASK)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_only_a_run_in_float64_is_refused(tmp_path, provide, dtype):
    class Casting(Transformer):
        name = "casting"

        def mixer(self, width, length, causal, config):
            return Mixer(width, by_operators)

    provide("model", "casting", Casting)
    spec = {"model": "casting", "task": "least-squares", "recipe": "smoke", "seeds": 1}
    spec |= {"model_args": {"layers": 1, "width": 8}, "recipe_args": {"steps": 2}}
    if dtype == "float32":
        assert run(**spec, dtype=dtype, eval_prompts=16, out=tmp_path).spec.dtype == dtype
        return
    with pytest.raises(
        UsageError, match=r"casting can.t run in float64: it computes _to_copy in float32"
    ):
        run(**spec, dtype=dtype, out=tmp_path)


def test_the_threshold_is_between_the_two_dtypes():
    assert np.finfo(np.float64).eps * 1e4 < LARGEST_DIFFERENCE < np.finfo(np.float32).eps / 100
