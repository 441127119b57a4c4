"""What a model predicts, looked at before time is spent on it."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from ..api.errors import PLUGIN_FAILURES
from ..api.prompts import Batch, map_tensors
from ..api.random import torch_generator
from ..api.task import Task, training_batch
from ..nn.predictions import averaged
from ..nn.training_form import tensors_of
from ..precision import default_dtype
from .causality import SCALES, draw_parameters
from .state_size import state_sizes

#: Prompts that a model is shown.
PROMPTS = 6
#: Largest difference between a prompt's prediction alone and in a batch: rounding in float32.
RELATIVE, ABSOLUTE = 1e-3, 1e-4
#: The same in float64, relative to the largest prediction.
HIDDEN = 1e-6
DEPENDS = "a prompt's prediction depends on the other prompts of its batch"


def _complex_numbers(module: nn.Module) -> str | None:
    """Which numbers of a module can't be trained, or not be kept in a file; None if all can."""
    # Training keeps all parameters in one tensor, of which a complex one would make all complex.
    for name, parameter in module.named_parameters():
        if parameter.is_complex():
            return f"its parameter {name} is complex: use two real ones, its two parts"
    for name, value in module.state_dict().items():
        if value.dtype == torch.complex128:
            return f"its buffer {name} is complex128, which safetensors does not hold: use two"
    return None


def find_problem(module: nn.Module, task: Task[Any], *, initial: bool = True) -> str | None:
    """What is wrong with a module's predictions, in one sentence, or None.

    The module is called in torch's default dtype, on the CPU and in evaluation mode. Predictions
    must have the signature's shape and that dtype. An `initial` model, before training, must also
    predict finite numbers, the same ones every time, and each prompt independently of the others.
    In training mode they must follow from parameters, buffers and torch's random numbers. Sizes of
    states, if it tells them, must be whole numbers.
    A solver or a construction may fail on single prompts, and its rounding may depend on a batch.
    """
    problem = _complex_numbers(module)
    if problem is not None:
        return problem
    # A forward pass may register buffers, such as a mask, which the module is to do without.
    module = copy.deepcopy(module)
    dtype = torch.get_default_dtype()
    batch = training_batch(task, PROMPTS, torch_generator("cpu", "inspection"), dtype)
    module.eval()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        prediction = module(batch.prompt)
        # Shape and dtype first: the tests below presuppose them.
        problem = _form(prediction, expected_shape(task, batch), dtype)
        if problem is not None or not initial:
            return problem
        problem = (
            _finiteness(prediction)
            or _dependence(module, batch, prediction)
            or _hidden_change(module, task, batch)
            or _hidden_dependence(module, task)
        )
    return problem or _state(module, task)


def predict_otherwise(module: nn.Module, other: nn.Module, task: Task[Any]) -> bool:
    """Whether the predictions of two modules on a few prompts differ by more than rounding.

    They have the same parameters, which are also drawn at random: what is multiplied by a parameter
    that begins with 0 shows only there. A model may fail at random ones, such as a matrix that is
    not positive definite there.
    """
    dtype = torch.get_default_dtype()
    batch = training_batch(task, PROMPTS, torch_generator("cpu", "inspection"), dtype)
    pair = [copy.deepcopy(part).eval() for part in (module, other)]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        if _differ(*(part(batch.prompt) for part in pair)):
            return True
        for scale in SCALES:
            for part in pair:
                draw_parameters(part, scale)
            try:
                predictions = [part(batch.prompt) for part in pair]
            except PLUGIN_FAILURES:
                continue
            if _differ(*predictions):
                return True
    return False


def _differ(first: Tensor, second: Tensor) -> bool:
    return not torch.allclose(first, second, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)


def expected_shape(task: Task[Any], batch: Batch) -> tuple[int, ...]:
    """The shape (B, P, W) of a prediction for a batch."""
    signature = task.signature
    width = batch.target.shape[2] if signature.varies else signature.output_width
    return (len(batch.target), len(signature.readout), width)


def _form(prediction: Any, shape: tuple[int, ...], dtype: torch.dtype) -> str | None:
    if not isinstance(prediction, Tensor):
        return f"it predicts a {type(prediction).__name__}, not a tensor"
    if prediction.shape != shape:
        # A loss would broadcast such a prediction against the target without a word.
        return f"it predicts {tuple(prediction.shape)}, not {shape} (prompts, positions, width)"
    if prediction.dtype != dtype:
        return f"it predicts {prediction.dtype} from prompts of {dtype}"
    return None


def _finiteness(prediction: Tensor) -> str | None:
    wrong = int((~prediction.isfinite()).flatten(1).any(dim=1).sum())
    if wrong:
        return f"its predictions before training are not finite on {wrong} of {PROMPTS} prompts"
    return None


def _dependence(module: nn.Module, batch: Batch, prediction: Tensor) -> str | None:
    # To the bit: the same operators on the same numbers leave no rounding to allow for.
    if not torch.equal(module(batch.prompt), prediction):
        return (
            "two evaluations of one prompt differ: in evaluation mode it draws random numbers or "
            "changes its own state"
        )
    single = _one_by_one(module, batch)
    return None if torch.allclose(single, prediction, rtol=RELATIVE, atol=ABSOLUTE) else DEPENDS


def _hidden_change(module: nn.Module, task: Task[Any], batch: Batch) -> str | None:
    """As `_dependence`, in training mode with all that a checkpoint holds set back.

    What else a forward pass changes is lost with a checkpoint, and differs between engines.
    """
    module = copy.deepcopy(module).train()
    before = {name: tensor.clone() for name, tensor in tensors_of(module).items()}
    # A model may predict several times for training, for one loss.
    loss = averaged(task.loss)
    losses: list[Tensor] = []
    for _ in range(2):
        for name, tensor in tensors_of(module).items():
            if name in before:  # a first forward pass may register more, such as a mask
                if tensor.shape != before[name].shape:
                    return f"in training mode, its buffer {name} changes its shape"
                tensor.copy_(before[name])
        torch.manual_seed(0)
        losses.append(loss(module(batch.prompt), batch.target))
    first, second = losses
    if torch.allclose(first, second, rtol=0.0, atol=0.0, equal_nan=True):
        return None
    return (
        "in training mode it changes what is no parameter or buffer, or draws random numbers not "
        "by torch: register what changes as a buffer when the model is built"
    )


def _hidden_dependence(module: nn.Module, task: Task[Any]) -> str | None:
    """As `_dependence`, of a float64 copy with random parameters.

    What is multiplied by a parameter that begins with 0 shows only there.
    """
    module = copy.deepcopy(module).double()
    batch = training_batch(task, PROMPTS, torch_generator("cpu", "inspection"), torch.float64)
    for scale in SCALES if any(True for _ in module.parameters()) else ():
        draw_parameters(module, scale)
        try:
            # The dtype also of what it makes in its forward pass, such as a first state.
            with default_dtype(torch.float64):
                together, single = module(batch.prompt), _one_by_one(module, batch)
        except PLUGIN_FAILURES:  # it can't compute in float64
            return None
        size = float(together.abs().max())
        # Parameters that are too large for finite predictions tell nothing.
        if math.isfinite(size) and float((single - together).abs().max()) > HIDDEN * size:
            return DEPENDS
    return None


def _one_by_one(module: nn.Module, batch: Batch) -> Tensor:
    count = len(batch.target)
    prompts = [map_tensors(lambda t, i=i: t[i : i + 1], batch.prompt) for i in range(count)]
    return torch.cat([module(prompt) for prompt in prompts])


def _state(module: nn.Module, task: Task[Any]) -> str | None:
    sizes = state_sizes(module, task.signature.length)
    if sizes is None:
        return None
    if not isinstance(sizes, tuple) or not all(type(n) is int and n >= 0 for n in sizes):
        return f"state_sizes() returned {sizes!r:.80}, not a tuple of whole numbers"
    return None
