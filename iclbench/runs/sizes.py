"""Bounds on sizes, which are checked before memory is taken.

Sizes come from requests and from the records of strangers: a number of prompts, a length, a width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from ..api.config import Config
from ..api.errors import UsageError
from ..api.prompts import Signature
from ..api.results import MOST_VALUES
from ..api.task import Task
from ..devices import machine_memory

#: The largest integer among the arguments of a task or a model, except seeds.
LARGEST_ARGUMENT = 10**7
#: The same for a construction, which makes tensors for every step at once.
LARGEST_OF_CONSTRUCTION = 10**5
#: The most parameters of a model as tensors, each of any size.
MOST_TENSORS = 20_000
#: Prompts are held in float64 at least; draws and copies take about as much again, or more.
BYTES_PER_NUMBER = 8
#: A parameter with its gradient, in float32.
BYTES_PER_PARAMETER = 8


def require_small_arguments(config: Config, owner: str, most: int = LARGEST_ARGUMENT) -> None:
    """Raise UsageError for an integer over `most`: it may be a length. Seeds may be larger."""
    for name, value in _integers(config.model_dump()):
        if abs(value) > most and not name.endswith("seed"):
            raise UsageError(f"{owner}: {name}={value:,} is too large; at most {most:,}")


def _integers(content: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in content.items():
        yield from _integers_of(name, value)


def _integers_of(name: str, value: object) -> Iterator[tuple[str, int]]:
    if isinstance(value, int):
        yield name, value
    elif isinstance(value, Mapping):
        yield from _integers(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _integers_of(name, item)


def require_room(prompts: int, signature: Signature, what: str) -> None:
    """Raise UsageError for prompts that would need more memory than the machine has."""
    needed = prompts * numbers_per_prompt(signature) * BYTES_PER_NUMBER
    memory = machine_memory()
    if needed > memory:
        raise UsageError(
            f"{what}: {prompts:,} prompts need at least {_gigabytes(needed)}; this machine has "
            f"{_gigabytes(memory)}"
        )


def require_storable(models: int, prompts: int, task: Task[Any]) -> None:
    """Raise UsageError for more values than a record holds, before anything is trained.

    Every model has values of every prompt, of the metric that ranks and along every axis. What else
    the task measures shows only in the evaluation, which keeps the models if it is too much.
    """
    measured = {task.primary.metric: 1} | {n: len(a.values) for n, a in task.axes.items()}
    numbers = sum(measured.values())
    values = models * prompts * numbers
    if values > MOST_VALUES:
        raise UsageError(
            f"task {task.name}: {values:,} values are more than a record holds ({MOST_VALUES:,}); "
            "evaluate fewer prompts or seeds"
        )


def numbers_per_prompt(signature: Signature) -> int:
    """How many numbers a prompt and its target hold, with the prompt's fields and its sequence."""
    inputs = signature.length * max(1, signature.input_width)
    shapes = sum(math.prod(shape) for shape in signature.shapes.values())
    # The target of scores is the right one's number.
    scored = signature.target in {"class", "token"}
    return inputs + shapes + len(signature.readout) * (1 if scored else signature.output_width)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"


@contextmanager
def bounded_model(name: str) -> Iterator[None]:
    """Within the block, raise UsageError for a model that grows too large for the machine."""
    tensors = elements = kept = 0
    memory = machine_memory()

    def count_buffer(module: nn.Module, key: str, buffer: Tensor | None) -> None:
        nonlocal kept
        kept += 0 if buffer is None else buffer.numel() * buffer.element_size()
        if kept > memory:
            raise UsageError(
                f"{name} has buffers of more than {_gigabytes(kept)}; this machine has "
                f"{_gigabytes(memory)}"
            )

    def count(module: nn.Module, key: str, parameter: Tensor | None) -> None:
        nonlocal tensors, elements
        tensors += parameter is not None
        elements += 0 if parameter is None else parameter.numel()
        if tensors > MOST_TENSORS:
            raise UsageError(f"{name} has more than {MOST_TENSORS:,} parameter tensors")
        if elements * BYTES_PER_PARAMETER > memory:
            raise UsageError(
                f"{name} has more than {elements:,} parameters; this machine has "
                f"{_gigabytes(memory)}"
            )

    # Parameters are registered one by one, before they are initialized.
    handles = [
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count_buffer),
    ]
    try:
        yield
    except RuntimeError as error:
        # A single tensor that is too large, before it is registered.
        if "can't allocate memory" not in str(error):
            raise
        message = f"{name} does not fit into this machine's {_gigabytes(memory)}"
        raise UsageError(message) from None
    finally:
        for handle in handles:
            handle.remove()
