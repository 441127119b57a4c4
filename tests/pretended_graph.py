"""A CUDA graph for `pretended_cuda`: operators that are recorded and then replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Graph:
    """A CUDA graph: operators, and the memory that they read and write."""

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], tuple, dict[str, Any], Any]] = []
        self.broken = False

    def record(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The memory of an operator's result. Nothing is computed, except views."""
        aliased = [a for a in func._schema.arguments if a.alias_info is not None]
        if any(not argument.alias_info.is_write for argument in aliased):
            out = func(*args, **kwargs)
            # Such as `resolve_conj`, which copies where there is something to do.
            if shares_memory(out, [*args, *kwargs.values()]):
                return out
        elif aliased:
            names = [argument.name for argument in func._schema.arguments]
            given = dict(zip(names, args, strict=False)) | kwargs
            written = tuple(given[argument.name] for argument in aliased)
            out = written[0] if len(func._schema.returns) == 1 else written
        else:
            shape_args, shape_kwargs = mapped(shape_of, args), mapped(shape_of, kwargs)
            if "device" in kwargs:
                shape_kwargs |= {"device": "meta"}
            out = mapped(memory_of, func(*shape_args, **shape_kwargs))
        self.steps.append((func, args, kwargs, out))
        return out

    def replay(self) -> None:
        """Compute every operator again, on the memory of the capture."""
        for func, args, kwargs, out in self.steps:
            results = tensors_in(func(*args, **kwargs))
            for memory, result in zip(tensors_in(out), results, strict=True):
                if memory is not result:
                    memory.copy_(result)


def shares_memory(results: Any, operands: Any) -> bool:
    """Whether the results are views of the operands."""
    of_results, of_operands = (
        {tensor.untyped_storage().data_ptr() for tensor in tensors_in(values)}
        for values in (results, operands)
    )
    return of_results <= of_operands


def shape_of(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of this shape and layout, without values."""
    return tensor.to("meta")


def memory_of(shape: torch.Tensor) -> torch.Tensor:
    """Memory for a tensor of this shape and layout, with whatever it holds."""
    return torch.empty_strided(shape.size(), shape.stride(), dtype=shape.dtype)


def tensors_in(values: Any) -> list[torch.Tensor]:
    """The tensors among an operator's arguments or results, which may be lists of them."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, tuple | list):
        return [tensor for value in values for tensor in tensors_in(value)]
    return []


def mapped(function: Callable[[torch.Tensor], torch.Tensor], values: Any) -> Any:
    """Arguments or results, with a function applied to their tensors."""
    if isinstance(values, torch.Tensor):
        return function(values)
    if isinstance(values, dict):
        return {name: mapped(function, value) for name, value in values.items()}
    if isinstance(values, tuple | list):
        return type(values)(mapped(function, value) for value in values)
    return values
