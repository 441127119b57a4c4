"""Any optimizer of torch.optim or of an installed package, one instance per replica."""

from __future__ import annotations

import importlib
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
            self._optimizers = [cls(list(v.values()), **arguments) for v in self._views]
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
                group["lr"] = rates[r]
            optimizer.step()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return every replica's state_dict, its tensors apart, by `replica/parameter/key`."""
        tensors: dict[str, Tensor] = {}
        values: dict[str, Any] = {}
        for r, optimizer in enumerate(self._optimizers):
            for index, entries in optimizer.state_dict()["state"].items():
                for key, value in entries.items():
                    path = f"{r}/{index}/{key}"
                    values[path] = _take_tensors(value, path, tensors)
        return tensors, values

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Rebuild every replica's state_dict."""
        for r, optimizer in enumerate(self._optimizers):
            state: dict[int, dict[str, Any]] = {}
            for path, value in values.items():
                replica, index, key = path.split("/", 2)
                if int(replica) == r:
                    state.setdefault(int(index), {})[key] = _put_tensors(value, tensors)
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})


def torch_classes() -> dict[str, Any]:
    """Return the optimizers of torch.optim by their names in lower case."""
    return {
        name.lower(): cls
        for name, cls in vars(torch.optim).items()
        if inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer) and name != "Optimizer"
    }


def class_at(path: str) -> Any:
    """Return the optimizer at a path, `package.Class`; raises UsageError."""
    module, _, attribute = path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"optimizer {path}: {error}") from None
    if not (inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer)):
        raise UsageError(f"optimizer {path} is no torch.optim.Optimizer")
    return cls


def _take_tensors(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return the value as JSON can hold it; its tensors go to `tensors`, by path."""
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, list | tuple):
        return [_take_tensors(v, f"{path}/{i}", tensors) for i, v in enumerate(value)]
    return value


def _put_tensors(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        return tensors[value["tensor"]]
    return [_put_tensors(v, tensors) for v in value] if isinstance(value, list) else value
