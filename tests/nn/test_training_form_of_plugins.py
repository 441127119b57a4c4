"""Training forms of all architectures match the paper's modules: predictions and gradients."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch.func import functional_call, vmap

from iclbench import TrainingContext, load_task, map_tensors, torch_generator, training_batch
from iclbench.api.architecture import Architecture
from iclbench.api.prompts import stack
from iclbench.nn.training_form import names_in, training_form
from iclbench.plugins import host

CPU, R, SIZE = torch.device("cpu"), 3, 4
#: A batch size far above every threshold, to use the forms for large batches.
LARGE = 10**7
ALONE = TrainingContext(CPU, torch.float64, SIZE)
TASKS = {
    "prefixes": ("least-squares-prefixes", {"dim": 2, "examples": 4}),
    "query": ("least-squares", {"dim": 2, "examples": 4}),
    "ridge": ("ridge", {"dim": 2, "examples": 3}),
    "systems": ("linear-system", {}),
    "weights": ("least-squares", {"dim": 2, "examples": 4, "target": "weights"}),
    "classes": ("categorical", {}),
}
SEQUENCE = {"layers": 2, "width": 8}
CASES = [
    ("transformer", "prefixes", {**SEQUENCE, "heads": 2}),
    ("transformer", "prefixes", {**SEQUENCE, "head_width": 9}),
    ("transformer", "query", {**SEQUENCE, "causal": False, "layer_norm": False, "mlp": False}),
    ("transformer", "prefixes", {**SEQUENCE, "attention": "linear", "mean": True}),
    ("transformer", "query", {**SEQUENCE, "attention": "linear", "causal": False}),
    ("baseconv", "prefixes", SEQUENCE),
    ("baseconv", "prefixes", {**SEQUENCE, "bias": "position"}),
    ("baseconv", "prefixes", {**SEQUENCE, "convolution": "fft"}),
    ("baseconv", "query", {**SEQUENCE, "causal": False}),
    ("lsa-tokens", "prefixes", {**SEQUENCE, "heads": 2}),
    ("lsa-tokens", "query", {"layers": 1, "width": 8, "causal": False}),
    ("elsa-tokens", "query", SEQUENCE),
    ("lsa", "ridge", {"layers": 1, "heads": 1}),
    ("lsa", "ridge", {"layers": 2, "heads": 2, "form": "enumerated"}),
    ("lsa", "query", {"layers": 1, "blocks": 2, "heads": 1}),
    ("lsa", "ridge", {"layers": 2, "shared": True, "heads": 1}),
    ("lsa", "ridge", {"layers": 1, "mlp": True}),
    ("elsa", "ridge", {"layers": 1}),
    ("elsa", "ridge", {"layers": 1, "blocks": 3, "mlp": True, "heads": 1}),
    ("linear-transformer", "systems", {"layers": 2, "heads": 2}),
    ("linear-transformer", "systems", {"layers": 2, "normalize": True, "homogeneous": True}),
    ("linear-transformer", "systems", {"layers": 2, "ones": False}),
    ("linear-transformer", "query", {"layers": 2, "normalize": True, "homogeneous": True}),
    ("linear-transformer", "weights", {"layers": 2}),
    ("gd-transformer", "classes", {"blocks": 2}),
    ("mamba", "query", {**SEQUENCE, "expand": 1, "states": 2}),
    ("mamba2", "prefixes", SEQUENCE),
    ("delta-net", "query", {**SEQUENCE, "updates": 2, "negative_eigenvalues": True}),
    ("hgrn2", "query", {**SEQUENCE, "layers": 3}),
    ("hyena", "query", {**SEQUENCE, "order": 3}),
    ("h3", "prefixes", {**SEQUENCE, "state": 4, "head_width": 2}),
    ("hybrid", "prefixes", {**SEQUENCE, "mixers": ["h3", "attention"]}),
    ("lstm", "prefixes", SEQUENCE),
    ("llama", "query", {**SEQUENCE, "heads": 2}),
]
IDS = [f"{model} {task} {args}" for model, task, args in CASES]
#: Standard deviations of random parameters, small enough for polynomials of high degree.
STD = {"lsa": 0.1, "elsa": 0.05}
#: Indices of cases whose form accepts leading replicas.
LEADING = {12, 13, 14, 15, 19, 20, 21, 22, 23}


def build(model, task, args, count=R, dtype=torch.float64):
    """Return modules of one architecture at random parameters, and the task."""
    name, task_args = TASKS[task]
    task = load_task(name, **task_args)
    architecture = host().load("model", model, Architecture)()
    torch.manual_seed(0)
    modules = [
        architecture.build(task.signature, architecture.Config(**args)).to(dtype).train()
        for _ in range(count)
    ]
    for module in modules:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=STD.get(model, 0.3))
    return modules, task


def prompts(task, seed, count=R, dtype=torch.float64, size=SIZE):
    """Return one batch of prompts per module, stacked."""
    batches = [
        training_batch(task, size, torch_generator("cpu", seed, r), dtype) for r in range(count)
    ]
    return stack(batches).prompt


def of_row(prompt, row):
    return map_tensors(lambda t: t[row], prompt)


def outputs(predict, leaves):
    """Return a prediction and the gradients of a function of it."""
    prediction = predict()
    return prediction.detach(), *torch.autograd.grad(prediction.sin().sum(), leaves)


def expected_of(modules, prompt):
    """Return predictions and gradients (R, …) of the paper's modules, called in turn."""
    results = [
        outputs(lambda m=m, r=r: m(of_row(prompt, r)), list(m.parameters()))
        for r, m in enumerate(modules)
    ]
    return [torch.stack(tensors) for tensors in zip(*results, strict=True)]


def assert_close(actual, expected, tolerance=1e-10):
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        assert (a - b).norm() <= tolerance * max(1.0, float(b.norm()))


def take_a_step(tensors, seed):
    """Move parameters in place, as an optimizer does."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in tensors:
            tensor.add_(0.05 * torch.randn(tensor.shape, generator=generator).to(tensor))


@pytest.mark.parametrize(
    "changes",
    [{}, {"batch_size": LARGE}, {"compiled": True}],
    ids=["small", "large", "compiled"],
)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_alone(case, changes):
    (module,), task = build(*case, count=1)
    names = list(module.state_dict())
    form = training_form(module, replace(ALONE, **changes))
    for seed in range(2):
        for size in (SIZE, 1):
            prompt = prompts(task, seed, 1, size=size)
            leaves = list(module.parameters())
            results = outputs(lambda prompt=prompt: form(of_row(prompt, 0)), leaves)
            assert_close(results, [t[0] for t in expected_of([module], prompt)])
        take_a_step(module.parameters(), seed)
    assert list(module.state_dict()) == names


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_vmapped(case):
    modules, task = build(*case)
    context = replace(ALONE, replicas="vmapped", batch_size=LARGE)
    form = training_form(modules[0], context)
    names = names_in(form, modules[0])
    stacked = {
        name: torch.stack([m.get_parameter(name).detach() for m in modules]).requires_grad_()
        for name, _ in modules[0].named_parameters()
    }

    def predict(state, prompt):
        return functional_call(form, {names[name]: t for name, t in state.items()}, (prompt,))

    for seed in range(2):
        prompt = prompts(task, seed)
        leaves = list(stacked.values())
        results = outputs(lambda prompt=prompt: vmap(predict)(stacked, prompt), leaves)
        assert_close(results, expected_of(modules, prompt))


@pytest.mark.parametrize("index", range(len(CASES)), ids=IDS)
def test_leading(index):
    modules, task = build(*CASES[index])
    stacked = copy.deepcopy(modules[0])
    form = training_form(stacked, replace(ALONE, replicas="leading"))
    assert (form is not None) == (index in LEADING)
    if form is None:
        return
    for name, parameter in stacked.named_parameters():
        parameter.data = torch.stack([m.get_parameter(name).detach() for m in modules])
    for seed in range(2):
        prompt = prompts(task, seed)
        leaves = list(stacked.parameters())
        results = outputs(lambda prompt=prompt: form(prompt), leaves)
        assert_close(results, expected_of(modules, prompt))
        take_a_step(leaves, seed)
        for name, parameter in stacked.named_parameters():
            for r, module in enumerate(modules):
                module.get_parameter(name).data = parameter.detach()[r].clone()


@pytest.mark.parametrize("autocast", [None, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_lower_precision(case, autocast):
    """The form is as close to float64 as the paper's module in that precision, within a factor."""
    (module,), task = build(*case, count=1, dtype=torch.float32)
    context = replace(ALONE, dtype=torch.float32, autocast=autocast, batch_size=LARGE)
    form = training_form(module, context)
    prompt = of_row(prompts(task, 0, 1, dtype=torch.float32), 0)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast is not None):
        prediction, paper = form(prompt).double(), module(prompt).double()
    prompt = map_tensors(lambda t: t.double() if t.is_floating_point() else t, prompt)
    with torch.no_grad():
        exact = module.double()(prompt)
    unit = torch.finfo(autocast or torch.float32).eps
    allowed = 4 * float((paper - exact).norm()) + 10 * unit * float(exact.norm())
    assert float((prediction - exact).norm()) <= allowed


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_deep_copy_uses_its_own_parameters(case):
    (module,), task = build(*case, count=1)
    twin, form = copy.deepcopy((module, training_form(module, ALONE)))
    prompt = prompts(task, 0, 1)
    with torch.no_grad():
        assert_close([form(of_row(prompt, 0))], [module(of_row(prompt, 0))])
    take_a_step(twin.parameters(), 0)
    with torch.no_grad():
        assert_close([form(of_row(prompt, 0))], [twin(of_row(prompt, 0))])


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_hook_on_any_part_keeps_the_paper_s_module(case):
    (module,), _ = build(*case, count=1)
    *_, part = module.modules()
    part.register_forward_hook(lambda *_: None)
    assert training_form(module, ALONE) is module
