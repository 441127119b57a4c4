"""Operations of models, against formulas written out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from iclbench import RunSpec
from iclbench.runs import operations as counting
from iclbench.runs.models import given_models, initial_module
from iclbench.runs.operations import _attention, count_operations, forward_operations
from iclbench.runs.plan import resolve

DIM, WIDTH = 2, 8


def plan_of(model, task="least-squares-prefixes", **changes):
    task_args = {"dim": DIM, "examples": 4} if task.startswith("least-squares") else {}
    request = {"model": model, "task": task, "task_args": task_args, "recipe": "smoke"}
    return resolve(RunSpec(**{**request, **changes}))


class Counted(nn.Module):
    """Runs a function of numbers x (2, 4, 2)."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, prompt):
        return self.function(prompt[0][:, :4, :2].contiguous())


def operations_of(function):
    """The operations of a function of the inputs x, (2, 4, 2), for one of the two prompts."""
    plan = plan_of("least-squares-qr", "least-squares")
    return forward_operations(plan, Counted(function))


def attention_layer():
    return nn.MultiheadAttention(2, 1, batch_first=True)


def test_a_fused_gradient_is_that_of_its_products():
    """Torch's attention is one operator forward and one backward."""
    args = {"layers": 1, "width": 16, "heads": 2}
    fused, plain = (
        count_operations(plan, initial_module(plan, 0), 1)
        for plan in (plan_of("huggingface", model_args={**args, "attention": kind})
                     for kind in ("sdpa", "eager"))
    )  # fmt: skip
    assert fused == plain
    assert fused is not None
    assert fused.gradient > fused.forward


def test_a_transformer_is_counted_by_its_products():
    plan = plan_of("transformer", model_args={"layers": 3, "width": WIDTH})
    module = initial_module(plan, 0)
    tokens = plan.task.signature.length
    features = module.embed.real.in_features
    per_token = features * WIDTH + 3 * (4 + 8) * WIDTH**2
    products = tokens * per_token + 3 * 2 * tokens**2 * WIDTH
    read = len(plan.task.signature.readout) * WIDTH
    counted = forward_operations(plan, module)
    assert counted == pytest.approx(2 * (products + read))


def test_training_takes_a_gradient_for_each_prompt():
    plan = plan_of("transformer", model_args={"layers": 1, "width": WIDTH})
    operations = count_operations(plan, initial_module(plan, 0), 7)
    assert operations.training == operations.gradient * 16 * 7
    # Every product has two in the backward pass, but for the embedding: tokens have no gradient.
    module = initial_module(plan, 0)
    embedding = 2 * plan.task.signature.length * module.embed.real.in_features * WIDTH
    assert operations.gradient == pytest.approx(3 * operations.forward - embedding)
    assert count_operations(plan, initial_module(plan, 0)).training is None


def test_targets_have_the_dtype_of_predictions(monkeypatch):
    """Those of an evaluation are float64, which torch before 2.13 takes no gradient against."""
    plan, seen = plan_of("transformer", model_args={"layers": 1, "width": WIDTH}), []
    averaged = counting.averaged

    def watched(loss):
        def measure(predicted, target):
            seen.append((predicted.dtype, target.dtype))
            return averaged(loss)(predicted, target)

        return measure

    monkeypatch.setattr(counting, "averaged", watched)
    assert counting.gradient_operations(plan, initial_module(plan, 0)) > 0
    assert set(seen) == {(torch.float32, torch.float32)}


def test_gradients_that_an_adaptive_schedule_measures_are_counted():
    recipe = {"schedule": "adaptive", "measure_every": 10, "measure_batches": 5}
    plan = plan_of("transformer", model_args={"layers": 1, "width": WIDTH}, recipe_args=recipe)
    operations = count_operations(plan, initial_module(plan, 0), 40)
    assert operations.training == operations.gradient * 16 * (40 + 4 * 5)


def test_loops_without_a_backward_pass_are_not_counted_in_it():
    args = {"loops": 8, "width": WIDTH}
    whole, half = (
        count_operations(plan, initial_module(plan, 0), 1)
        for plan in (plan_of("looped-transformer", model_args={**args, "trained_loops": loops})
                     for loops in (8, 4))
    )  # fmt: skip
    assert whole.forward == half.forward
    # Of eight loops, four have the two products of a backward pass: 8 + 2 · 4 instead of 8 + 2 · 8.
    assert half.gradient / whole.gradient == pytest.approx(16 / 24, rel=0.02)


def test_frozen_parameters_have_no_gradient_to_count():
    """Where all but the read-out is frozen, the backward pass has one product, of its weights."""
    plan = plan_of("transformer", model_args={"layers": 1, "width": WIDTH})
    module = initial_module(plan, 0)
    names = [name for name, _ in module.named_parameters() if not name.startswith("readout")]
    frozen = replace(plan, spec=plan.spec.model_copy(update={"freeze": tuple(names)}))
    counted = count_operations(frozen, module, 1)
    assert counted.forward == count_operations(plan, module, 1).forward
    read = 2 * len(plan.task.signature.readout) * WIDTH
    assert counted.gradient == pytest.approx(counted.forward + read)


def test_an_optimizer_that_evaluates_the_loss_itself_has_unknown_operations():
    plan = plan_of("lsa", "least-squares", recipe_args={"optimizer": "lbfgs"})
    operations = count_operations(plan, initial_module(plan, 0), 7)
    assert operations.gradient > operations.forward
    assert operations.training is None


def test_operations_depend_on_neither_dtype_nor_weights():
    counts = set()
    for dtype, kind in (("float32", torch.float32), ("float64", torch.float64)):
        plan = plan_of("baseconv", dtype=dtype)
        counts |= {forward_operations(plan, initial_module(plan, s).to(kind)) for s in (0, 1)}
    assert len(counts) == 1
    assert None not in counts


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x @ torch.ones(2, 3), 2 * 4 * 2 * 3),
        (lambda x: torch.stack([a @ torch.ones(2) for a in x]), 2 * 4 * 2),
        (lambda x: torch.stack([a[0] @ torch.ones(2) for a in x]), 2 * 2),
        (lambda x: torch.fft.fft(torch.complex(x, x), dim=1), 5 * 2 * 4 * 2),
        (lambda x: torch.fft.rfft(x, dim=1), 5 * 2 * 4 * 2 / 2),
        (lambda x: torch.fft.irfft(torch.complex(x, x), n=8, dim=1), 5 * 2 * 8 * 3 / 2),
        (lambda x: nn.functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None]),
         2 * 2 * 4 * 4 * 2),
        (lambda x: nn.functional.conv1d(x.mT, torch.ones(3, 2, 2)), 2 * 3 * 2 * 2 * 3),
        (lambda x: torch.linalg.solve_triangular(torch.eye(4), x, upper=False), 4 * 2 * 4),
        (lambda x: torch.stack([torch.addmv(torch.ones(4), a, torch.ones(2)) for a in x]),
         2 * 4 * 2),
        (lambda x: torch.addbmm(torch.ones(4, 3), x, torch.ones(2, 2, 3)), 2 * 4 * 2 * 3),
        (lambda x: attention_layer().eval()(x, x, x, need_weights=False)[0],
         2 * (4 * 2 * 2 * 4) + 2 * (2 * 4 * 4 * 2)),
    ],
    ids=["product", "with a vector", "dot", "fft", "rfft", "irfft", "attention", "convolution",
         "triangular", "added to", "added up", "layer"],
)  # fmt: skip
def test_operators_are_counted(function, expected):
    assert operations_of(function) == expected


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: torch.linalg.solve(x[:, :2] + 3 * torch.eye(2), x[:, :2] @ x[:, :2]),
        lambda x: torch.cholesky_solve(x[:, :2] @ x[:, :2], torch.eye(2)),
        lambda x: nn.LSTM(2, 3, batch_first=True)(x)[0],
        lambda x: nn.Bilinear(2, 2, 3)(x, x) @ torch.ones(3, 1),
        lambda x: torch.cdist(x, x, compute_mode="use_mm_for_euclid_dist") @ torch.ones(4, 1),
    ],
    ids=["no product", "solve", "cholesky", "lstm", "bilinear", "distances"],
)
def test_what_is_not_counted_has_no_number(function):
    assert operations_of(function) is None


def test_a_norm_is_work_element_by_element():
    assert operations_of(lambda x: nn.functional.normalize(x) @ torch.ones(2, 1)) == 2 * 4 * 2


@pytest.mark.parametrize("model", ["least-squares-qr", "nearest-neighbours"])
def test_solvers_that_factorize_or_multiply_nothing_have_no_number(model):
    plan = plan_of(model, "least-squares")
    assert count_operations(plan, given_models(plan)[0].module) is None


def test_a_solver_of_products_alone_is_counted():
    plan = plan_of("averaging", "least-squares")
    operations = count_operations(plan, given_models(plan)[0].module)
    assert operations.forward == 2 * 4 * DIM + 2 * DIM
    assert operations.training is None


def test_a_model_that_cannot_be_counted_costs_no_record(capsys):
    plan = plan_of("least-squares-qr", "least-squares")

    def fail(x):
        raise RuntimeError("no counting here")

    assert count_operations(plan, Counted(fail)) is None
    assert "operations can't be counted: RuntimeError: no counting here" in capsys.readouterr().err


def test_values_of_attention_may_be_wider_than_its_keys():
    """Scores of 3 queries and 5 keys of width 4, and their sums of values of width 6."""
    assert _attention((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 6)) == 2 * 2 * 3 * 5 * (4 + 6)
