"""Any optimizer of torch.optim or of an installed package, one instance per replica."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from ...api.errors import UsageError
from ..replicas import Replicas
from .base import Optimizer, Update


class TorchOptimizer(Optimizer):
    """One instance per replica of a `torch.optim.Optimizer`, on views of the parameters."""

    def __init__(self, replicas: Replicas, name: str, cls: Any, arguments: dict[str, Any]) -> None:
        self._replicas = replicas
        self._views = [replicas.views(r) for r in range(replicas.count)]
        try:
            whole = with_rate(cls, arguments)
            self._optimizers = [cls(list(v.values()), **whole) for v in self._views]
        except (TypeError, ValueError) as error:
            raise UsageError(f"optimizer {name}: {error}") from None

    def update(self, by: Update) -> None:
        """See `Optimizer.update`."""
        rates, living = by.rate.tolist(), by.alive.tolist()
        for r, optimizer in enumerate(self._optimizers):
            if not living[r]:
                continue
            parts = self._replicas.split(by.grad[r])
            for name, parameter in self._views[r].items():
                parameter.grad = parts[name]
            for group in optimizer.param_groups:
                # The schedule is the harness's, so that it is the same for every optimizer.
                group["lr"] = rates[r]
            optimizer.step()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return every replica's state_dict, its tensors apart."""
        tensors: dict[str, Tensor] = {}
        trees = [
            _take_tensors(optimizer.state_dict(), str(r), tensors, {})
            for r, optimizer in enumerate(self._optimizers)
        ]
        return tensors, {"replicas": trees}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Take up every replica's state_dict."""
        for optimizer, tree in zip(self._optimizers, values["replicas"], strict=True):
            placed: dict[str, Tensor] = {}
            state = _put_tensors(tree, tensors, placed, self._replicas.flat.device)
            optimizer.load_state_dict(state)
            # torch casts what it loads to the parameters' dtype, counters too: take it as it was.
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for key, kept in state["state"].items():
                optimizer.state[parameters[key] if isinstance(key, int) else key] = kept


def with_rate(cls: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, with a learning rate where the class needs one; steps set their own."""
    rate = inspect.signature(cls).parameters.get("lr")
    needed = rate is not None and rate.default is inspect.Parameter.empty
    return {"lr": 1e-3, **arguments} if needed else arguments


def torch_classes() -> dict[str, Any]:
    """Return the optimizers of torch.optim by their names in lower case."""
    return {
        name.lower(): cls
        for name, cls in vars(torch.optim).items()
        if inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer) and name != "Optimizer"
    }


def _take_tensors(value: Any, path: str, tensors: dict[str, Tensor], paths: dict[int, str]) -> Any:
    """Return the value as JSON can hold it; its tensors go to `tensors`, by path.

    `paths` has those of tensors that were met before: one that has two names stays one.
    """
    if isinstance(value, Tensor):
        if id(value) not in paths:
            paths[id(value)] = path
            # A copy, since a file can't hold two tensors that share memory.
            tensors[path] = value.detach().clone()
        # The order in memory decides the last bits of products, and a file keeps only one.
        strides = {} if value.is_contiguous() else {"strides": list(value.stride())}
        return {"tensor": paths[id(value)], "device": value.device.type, **strides}
    if isinstance(value, dict):
        pairs = value.items()
        return {"dict": [[k, _take_tensors(v, f"{path}/{k}", tensors, paths)] for k, v in pairs]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        parts = [_take_tensors(v, f"{path}/{i}", tensors, paths) for i, v in enumerate(value)]
        return {kind: parts}
    return value


def _put_tensors(
    value: Any, tensors: dict[str, Tensor], placed: dict[str, Tensor], device: torch.device
) -> Any:
    """Undo `_take_tensors`; `placed` has the tensors that are in their place already.

    What was on a device of the parameters' type is put on `device`, which may have another index.
    """
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        path, kind = value["tensor"], value["device"]
        target = device if kind == device.type else kind
        return placed.setdefault(path, _strided(tensors[path].to(target), value.get("strides")))
    if "dict" in value:
        return {key: _put_tensors(v, tensors, placed, device) for key, v in value["dict"]}
    (kind, items) = next(iter(value.items()))
    parts = [_put_tensors(v, tensors, placed, device) for v in items]
    return parts if kind == "list" else tuple(parts)


def _strided(tensor: Tensor, strides: list[int] | None) -> Tensor:
    """A copy of the tensor in an order in memory; None: as it is."""
    if strides is None:
        # A file's tensors begin anywhere in its memory, and products of those round otherwise.
        return tensor.clone()
    empty = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return empty.copy_(tensor)
