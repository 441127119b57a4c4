"""Whether a model that claims float64 computes in float64.

Many kernels and reference layers cast to float32 inside. Such a model runs without an error, and
its row would claim sixteen digits that it can't have.
"""

from __future__ import annotations

import copy
import traceback
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from ..api.prompts import map_tensors
from ..api.random import torch_generator
from ..api.task import Task, training_batch
from ..precision import default_dtype
from .places import place_in

#: Numbers that a model sees in all, and the limits of prompts: a model that sees few numbers per
#: prompt needs many, since a perturbation moves few across a boundary of float32's rounding.
NUMBERS, FEWEST_PROMPTS, MOST_PROMPTS = 2**15, 8, 512
#: The most numbers that it predicts at once, as logits of a large vocabulary are many.
PREDICTED = 2**24
#: Size of the perturbation, relative to each number: below float32's rounding, above float64's.
PERTURBATION = 1e-9
#: Largest relative second difference of a model in float64: above float64's rounding amplified by a
#: condition number of 1e4, and far below what one number rounded to float32 leaves.
LARGEST_DIFFERENCE = 3e-11
#: Share of prompts that may exceed it: a kink, such as a ReLU's, lies between x − δ and x + δ for
#: far fewer, and float32 shows in more.
KINKS = 0.02


def find_lower_precision(module: nn.Module, task: Task[Any]) -> str | None:
    """Where a module that was built in float64 computes in a lower precision, in one sentence.

    None where nothing is found. Two probes: the dtypes of every operator whose result depends on
    the prompt or a parameter; and, for kernels that torch does not see into, how rough the
    predictions are under a perturbation of the prompt that float32 rounds away. Parameters are
    perturbed where a prompt holds ids alone.
    """
    # A copy in evaluation mode: dropout would look like rough predictions.
    module = copy.deepcopy(module).eval()
    trainable = any(True for _ in module.parameters())
    numbers = task.signature.length * max(1, task.signature.input_width)
    most = MOST_PROMPTS if trainable else FEWEST_PROMPTS
    predicted = len(task.signature.readout) * task.signature.output_width
    count = max(FEWEST_PROMPTS, min(most, NUMBERS // numbers, PREDICTED // predicted))
    batch = training_batch(task, count, torch_generator("cpu", "precision"), torch.float64)
    with torch.no_grad(), torch.random.fork_rng(devices=[]), default_dtype(torch.float64):
        with LowerPrecision([*batch.prompt, *module.parameters()]) as seen:
            module(batch.prompt)
        if seen.operator is not None:
            at = f" at {seen.place}" if seen.place else ""
            return f"it computes {seen.operator}{at} while the run is in float64"
        # A solver without parameters may amplify a perturbation as much as its system does.
        if not trainable:
            return None
        rough = _second_differences(module, batch.prompt) > LARGEST_DIFFERENCE
    if float(rough.double().mean()) > KINKS:
        return (
            "it computes in a lower precision than float64: its predictions are rough where its "
            f"input changes by {PERTURBATION:.0e} of its size"
        )
    return None


class LowerPrecision(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first operator on given tensors, or what depends on them, below float64.

    Either its result is, or one of its other operands: a constant in float32 leaves a result in
    float64 with the rounding of float32.
    """

    def __init__(self, sources: list[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operator: str | None = None
        self.place = ""
        # Tensors are told apart by their ids, so they must stay alive.
        self._dependent = {id(t): t for t in sources if _is_real(t)}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        """Run the operator, and follow what depends on the sources."""
        results = func(*args, **(kwargs or {}))
        inputs = tree_flatten((args, kwargs or {}))[0]
        if any(id(value) in self._dependent for value in inputs):
            name = str(func.overloadpacket).removeprefix("aten.")
            real = [value for value in tree_flatten(results)[0] if _is_real(value)]
            self._dependent |= {id(value): value for value in real}
            low = next(filter(_is_low, real), None)
            operand = next(filter(_is_rounded, inputs), None)
            if self.operator is None and low is not None:
                self._note(f"{name} in {_dtype(low)}")
            elif self.operator is None and operand is not None and real:
                self._note(f"{name} with a tensor in {_dtype(operand)}")
        return results

    def _note(self, operator: str) -> None:
        self.operator, self.place = operator, place_in(traceback.extract_stack())


def _is_real(value: Any) -> TypeGuard[Tensor]:
    """Integers and booleans, such as an argmax, carry no precision on."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _is_low(tensor: Tensor) -> bool:
    return tensor.dtype not in (torch.float64, torch.complex128)


def _is_rounded(value: Any) -> bool:
    """Whether a tensor below float64 holds what rounding may have left: no whole or short number.

    A mask of zeros and infinities, or a scale of 1/8, is exact in any dtype.
    """
    if not (_is_real(value) and _is_low(value)) or value.is_complex():
        return False
    is_exact = (value == value.round()) | (value == value.bfloat16()) | value.isnan()
    return not bool(is_exact.all())


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _second_differences(module: nn.Module, prompt: Any) -> Tensor:
    """‖f(x + δ) − 2f(x) + f(x − δ)‖ / ‖f(x)‖ of every prompt, (B,).

    It vanishes as δ² for a smooth f; rounding within f leaves a part that does not.
    """
    real = any(field.is_floating_point() and field.numel() for field in prompt)

    def predict(sign: float) -> Tensor:
        generator = torch_generator("cpu", "precision, perturbation")

        def perturbed(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point():
                return tensor
            # The same signs at x + δ and x − δ: the generator starts from one seed in both calls.
            signs = torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1
            return tensor + sign * PERTURBATION * tensor.abs() * signs

        if real:
            prediction: Tensor = module(map_tensors(perturbed, prompt))
        else:
            moved = copy.deepcopy(module)
            for parameter in moved.parameters():
                parameter.copy_(perturbed(parameter))
            prediction = moved(prompt)
        return prediction.flatten(1)

    middle = module(prompt).flatten(1)
    # First differences would show any slope; second differences of a smooth f are tiny.
    difference = predict(1.0) - 2 * middle + predict(-1.0)
    # A prediction of 0, or one that is not finite, says nothing.
    relative: Tensor = difference.norm(dim=1) / middle.norm(dim=1)
    return relative.nan_to_num(0.0, posinf=0.0)
