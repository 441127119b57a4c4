"""Floating-point operations of a model, which do not depend on the machine.

torch's formulas count matrix products, convolutions and attention: a multiplication and an addition
are two operations. Products with vectors, Fourier transforms and triangular systems are added here.
Operations element by element are not counted.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import flop_registry, shape_wrapper

from ..api.costs import Operations
from ..api.errors import first_line
from ..api.recipe import Recipe
from ..console import report
from ..nn.predictions import averaged
from ..precision import DTYPES
from ..training.gradients.capacity import Operators
from ..training.optimizers.choice import evaluates_the_loss
from ..training.replicas import matching
from ..training.schedules import measuring_share
from .plan import Plan

Shape = Sequence[int]

#: Operators whose arithmetic has no formula here; a model that runs one has unknown operations.
UNCOUNTED = (
    "linalg", "cholesky", "triangular_solve", "lu_solve", "ormqr", "geqrf", "rnn", "svd",
    "attention", "transformer_encoder_layer", "euclidean_dist",
)  # fmt: skip
#: The operator of a bilinear layer. Another one, which resizes images, has its name in its own.
BILINEAR = "_trilinear"
#: Operators that have such a name, and work element by element.
SIMPLE = {"linalg_vector_norm", "linalg_cross", "_linalg_check_errors"}


def count_operations(plan: Plan, module: nn.Module, steps: int | None = None) -> Operations | None:
    """The operations of a forward pass per prompt, and those of training one seed for these steps.

    They are those of the paper's module, whatever its form for training computes. Of an optimizer
    that evaluates the loss itself, those of a training are unknown. None where they can't be
    counted, as for a language model that is asked.
    """
    if plan.spec.origin == "asked":
        return None
    try:
        forward = forward_operations(plan, module)
        trained = plan.recipe is not None and steps is not None
        gradient = gradient_operations(plan, module) if trained else None
    except Exception as error:  # counting must not cost a run its record
        report(f"{plan.spec.model}: operations can't be counted: {first_line(error)}")
        return None
    if forward is None:
        return None
    if plan.recipe is None or steps is None:
        return Operations(forward=forward)
    operations = Operations(forward=forward, gradient=gradient)
    training = step_operations(operations, plan.recipe, steps)
    return operations.model_copy(update={"training": training})


def step_operations(operations: Operations | None, recipe: Recipe, steps: int) -> float | None:
    """The operations of training one seed for that many steps; None where they are unknown.

    Those of the gradients by which an adaptive schedule measures are among them.
    """
    if operations is None or operations.gradient is None or evaluates_the_loss(recipe):
        return None
    return operations.gradient * recipe.batch * steps * (1.0 + measuring_share(recipe))


def gradient_operations(plan: Plan, module: nn.Module) -> float | None:
    """The operations of a forward and a backward pass per prompt, or None, as for a forward pass.

    A module may stop the gradient: a looped transformer's first loops have no backward pass. Nor
    has what feeds frozen parameters alone.
    """
    spec, prompts = plan.spec, 2
    batches = plan.task.evaluation_batches(prompts, spec.eval_seed, DTYPES[spec.dtype])
    module = copy.deepcopy(module).cpu().train()
    parameters = dict(module.named_parameters())
    for name in matching(list(parameters), spec.freeze):
        parameters[name].requires_grad_(False)
    loss, arithmetic = averaged(plan.task.loss), Arithmetic()
    with torch.enable_grad(), arithmetic:
        for batch in batches:
            target = batch.target
            if target.is_floating_point():  # those of an evaluation are float64
                target = target.to(DTYPES[spec.dtype])
            whole = loss(module(batch.prompt), target).sum()
            whole.backward()  # type: ignore[no-untyped-call]
    return arithmetic.known(prompts * len(batches))


def forward_operations(plan: Plan, module: nn.Module) -> float | None:
    """The operations of a forward pass per prompt, or None where they can't be counted."""
    spec, prompts = plan.spec, 2
    batches = plan.task.evaluation_batches(prompts, spec.eval_seed, DTYPES[spec.dtype])
    module, arithmetic = copy.deepcopy(module).cpu().eval(), Arithmetic()
    with torch.no_grad(), _parts_of_layers(), arithmetic:
        for batch in batches:
            module(batch.prompt)
    return arithmetic.known(prompts * len(batches))


@contextlib.contextmanager
def _parts_of_layers() -> Iterator[None]:
    """Run torch's layers as the products that they are made of, not as one operator each."""
    was_on = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_on)


class Arithmetic(Operators):  # type: ignore[no-untyped-call]
    """Counts the operators that run, and the operations of those that have a formula."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0.0
        self._is_known = True
        further = {op: shape_wrapper(f) for op, f in _formulas().items()}  # type: ignore[no-untyped-call]
        self._formulas = flop_registry | further

    def known(self, prompts: int) -> float | None:
        """The operations per prompt, or None where an operator ran that nobody counts."""
        return float(self.operations / prompts) if self.operations and self._is_known else None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        """Count, and run."""
        result = super().__torch_dispatch__(func, types, args, kwargs)
        formula = self._formulas.get(func.overloadpacket)
        name = func.overloadpacket.__name__
        if formula is not None:
            self.operations += formula(*args, **(kwargs or {}), out_val=result)
        elif name == BILINEAR or (
            name not in SIMPLE and any(part in name for part in UNCOUNTED)
        ):  # fmt: skip
            self._is_known = False
        return result


def _formulas() -> dict[Any, Any]:
    """Operations of further operators, from the shapes of their arguments."""
    aten = torch.ops.aten
    return {
        aten.mv: lambda a, b, **_: 2 * math.prod(a),
        aten.addmv: lambda start, a, b, **_: 2 * math.prod(a),
        aten.addbmm: lambda start, a, b, **_: 2 * math.prod(a) * b[-1],
        aten.dot: lambda a, b, **_: 2 * math.prod(a),
        aten.vdot: lambda a, b, **_: 2 * math.prod(a),
        aten._fft_r2c: lambda a, dims, *_, **__: _fourier(a, dims) / 2,
        aten._fft_c2r: lambda a, dims, *_, out_shape, **__: _fourier(out_shape, dims) / 2,
        aten._fft_c2c: lambda a, dims, *_, **__: _fourier(a, dims),
        aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        # Each product has two in the backward pass. What is computed again is not counted.
        aten._scaled_dot_product_flash_attention_for_cpu_backward: (
            lambda grad, q, k, v, *_, **__: 2 * _attention(q, k, v)
        ),
        # By substitution: half of an n × n matrix times each right-hand side.
        aten.linalg_solve_triangular: lambda a, b, **_: math.prod(b) * a[-1],
    }


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """Two products for each head, (B, H, S, d); a mask saves nothing."""
    heads = math.prod(query[:2])
    return 2 * heads * query[2] * key[2] * (query[3] + value[3])


def _fourier(shape: Shape, dims: Sequence[int]) -> float:
    """5 n log₂ n for each complex transform of n numbers; a real one takes half."""
    size = math.prod(shape[dim] for dim in dims)
    return 5.0 * math.prod(shape) * math.log2(size)
