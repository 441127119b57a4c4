"""Optimizers on stacked parameters: one row a replica, each with its own learning rate.

Adam, AdamW and SGD are the engine's own, since torch's take one learning rate for all; they follow
`torch.optim` step for step. Any other optimizer, torch's or a package's, steps replica after
replica.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from ..api.config import Config, parse_config
from ..api.errors import UsageError, unknown
from ..api.recipe import Recipe
from .gauss_newton import GaussNewton
from .lbfgs import LBFGS
from .optimizer import BatchOptimizer, Optimizer, Update
from .replicas import Replicas

Beta = Annotated[float, Field(ge=0, lt=1)]

#: Whether this build of torch has the operators, which are not a part of its stable interface.
HAS_FUSED_ADAM = hasattr(torch, "_fused_adam_") and hasattr(torch, "_fused_adamw_")

#: Parameters a replica from which an update of its own costs less than one operator by operator.
WORTH_FUSING = 4096


class Stacked(Optimizer):
    """Base of the engine's own: moments have the shape of the parameters, (R, P)."""

    moments: ClassVar[tuple[str, ...]] = ()
    Arguments: ClassVar[type[Config]]

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        name = type(self).__name__.lower()
        self.arguments: Any = parse_config(self.Arguments, arguments, f"optimizer {name}")
        self.flat = replicas.flat
        self.buffers = {m: torch.zeros_like(self.flat) for m in self.moments}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The moments."""
        return dict(self.buffers), {}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Copy the moments."""
        for name, buffer in self.buffers.items():
            buffer.copy_(tensors[name])


class Adam(Stacked):
    """torch.optim.Adam.

    On a CPU by torch's operator that passes over memory once, called for replicas of one learning
    rate, unless many small ones have rates of their own.
    """

    class Arguments(Config):
        """As in torch.optim."""

        betas: tuple[Beta, Beta] = (0.9, 0.999)
        eps: float = Field(1e-8, ge=0)
        weight_decay: float = Field(0.0, ge=0)

    moments = ("mean", "square")
    decoupled: ClassVar[bool] = False

    def update(self, by: Update) -> None:
        """See `Optimizer.update`."""
        if HAS_FUSED_ADAM and self.flat.device.type == "cpu":
            rates = by.rate.tolist()
            if self.flat.shape[1] >= WORTH_FUSING or len(set(rates)) == 1:
                return self._update_fused(by, rates)
        return self._update_stacked(by)

    def _update_fused(self, by: Update, rates: list[float]) -> None:
        a, row = self.arguments, 0
        update = torch._fused_adamw_ if self.decoupled else torch._fused_adam_
        # The operator reads memory as it lies, whatever the strides are.
        step, grad = torch.tensor(float(by.step)), by.grad.contiguous()
        for (rate, lives), run in itertools.groupby(zip(rates, by.alive.tolist(), strict=True)):
            rows = slice(row, row + len(list(run)))
            row = rows.stop
            if lives:
                update(
                    [self.flat[rows]],
                    [grad[rows]],
                    [self.buffers["mean"][rows]],
                    [self.buffers["square"][rows]],
                    [],
                    [step],
                    lr=rate,
                    beta1=a.betas[0],
                    beta2=a.betas[1],
                    weight_decay=a.weight_decay,
                    eps=a.eps,
                    amsgrad=False,
                    maximize=False,
                )

    def _update_stacked(self, by: Update) -> None:
        a, grad, rate, step = self.arguments, by.grad, by.rate, by.step
        beta1, beta2 = a.betas
        if a.weight_decay and not self.decoupled:
            grad = grad + a.weight_decay * self.flat
        mean, square = self.buffers["mean"], self.buffers["square"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = (1 - beta2**step) ** 0.5
        size = (rate * (scale / (1 - beta1**step))).unsqueeze(1)
        delta = mean.div(square.sqrt().add_(a.eps * scale)).mul_(size)
        if a.weight_decay and self.decoupled:
            delta += (rate * a.weight_decay).unsqueeze(1) * self.flat
        _subtract(self.flat, delta, by.alive)


class AdamW(Adam):
    """torch.optim.AdamW."""

    class Arguments(Adam.Arguments):
        """As in torch.optim."""

        weight_decay: float = Field(1e-2, ge=0)

    decoupled = True


class SGD(Stacked):
    """torch.optim.SGD."""

    class Arguments(Config):
        """As in torch.optim."""

        momentum: float = Field(0.0, ge=0)
        nesterov: bool = False
        weight_decay: float = Field(0.0, ge=0)

        @model_validator(mode="after")
        def _nesterov_has_momentum(self) -> SGD.Arguments:
            if self.nesterov and not self.momentum:
                raise ValueError("nesterov needs momentum")
            return self

    moments = ("velocity",)

    def update(self, by: Update) -> None:
        """See `Optimizer.update`."""
        a, grad = self.arguments, by.grad
        if a.weight_decay:
            grad = grad + a.weight_decay * self.flat
        if a.momentum:
            velocity = self.buffers["velocity"].mul_(a.momentum).add_(grad)
            grad = grad + a.momentum * velocity if a.nesterov else velocity
        _subtract(self.flat, grad * by.rate.unsqueeze(1), by.alive)


class TorchOptimizer(Optimizer):
    """A class of torch.optim or a package, one instance a replica, on views of the parameters."""

    def __init__(self, replicas: Replicas, name: str, arguments: dict[str, Any]) -> None:
        self._replicas = replicas
        self._views = [replicas.views(r) for r in range(replicas.count)]
        cls = _optimizer_class(name)
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
            for parameter, part in zip(self._views[r].values(), parts, strict=True):
                parameter.grad = part
            for group in optimizer.param_groups:
                group["lr"] = rates[r]
            optimizer.step()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Every replica's state_dict, its tensors apart."""
        tensors: dict[str, Tensor] = {}
        values: dict[str, Any] = {}
        for r, optimizer in enumerate(self._optimizers):
            for index, entries in optimizer.state_dict()["state"].items():
                for key, value in entries.items():
                    place = f"{r}/{index}/{key}"
                    values[place] = _take_tensors(value, place, tensors)
        return tensors, values

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Rebuild every replica's state_dict."""
        for r, optimizer in enumerate(self._optimizers):
            state: dict[int, dict[str, Any]] = {}
            for place, value in values.items():
                replica, index, key = place.split("/", 2)
                if int(replica) == r:
                    state.setdefault(int(index), {})[key] = _put_tensors(value, tensors)
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": state, "param_groups": groups})


OWN: dict[str, type[Stacked] | type[GaussNewton] | type[LBFGS]] = {
    "adam": Adam,
    "adamw": AdamW,
    "sgd": SGD,
    "gauss-newton": GaussNewton,
    "lbfgs": LBFGS,
}


def make_optimizer(replicas: Replicas, name: str, arguments: dict[str, Any]) -> Optimizer:
    """The engine's own optimizer where it has one, else torch's; raises UsageError."""
    if name.lower() in OWN:
        return OWN[name.lower()](replicas, arguments)
    return TorchOptimizer(replicas, name, arguments)


def check_optimizer(recipe: Recipe) -> dict[str, Any]:
    """The arguments, checked before a run starts; the engine's own with every default.

    Raises UsageError for a name or arguments that no optimizer takes.
    """
    name, arguments = recipe.optimizer, recipe.optimizer_args
    own = OWN.get(name.lower())
    if own is not None and issubclass(own, BatchOptimizer):
        if recipe.clip or recipe.gradient_memory:
            raise UsageError(
                f"optimizer {name} has a gradient of its own: leave out clip and memory"
            )
        if recipe.accumulate > 1:
            raise UsageError(f"optimizer {name} takes whole batches: accumulate=1")
        if recipe.autocast != "none":
            raise UsageError(f"optimizer {name} is for full precision: autocast=none")
    if own is GaussNewton and recipe.batch < 2:
        raise UsageError(f"optimizer {name} divides its batch: it needs two prompts or more")
    if "lr" in arguments:
        raise UsageError(f"optimizer {name}: lr is the recipe's learning_rate")
    if name.lower() in OWN:
        made = parse_config(OWN[name.lower()].Arguments, arguments, f"optimizer {name}")
        return made.model_dump(mode="json")
    try:
        _optimizer_class(name)([torch.nn.Parameter(torch.zeros(2, 2))], **arguments)
    except UsageError:
        raise
    except Exception as error:  # a package's own
        raise UsageError(f"optimizer {name}: {error}") from None
    return arguments


def _take_tensors(value: Any, place: str, tensors: dict[str, Tensor]) -> Any:
    """The value as JSON can hold it; its tensors go to `tensors`, by place."""
    if isinstance(value, Tensor):
        tensors[place] = value
        return {"tensor": place}
    if isinstance(value, list | tuple):
        return [_take_tensors(v, f"{place}/{i}", tensors) for i, v in enumerate(value)]
    return value


def _put_tensors(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        return tensors[value["tensor"]]
    return [_put_tensors(v, tensors) for v in value] if isinstance(value, list) else value


def _optimizer_class(name: str) -> Any:
    """A class of torch.optim by its name, or any other by its path, `package.Class`."""
    cls = _class_at(name) if "." in name else _torch_class(name)
    closure = inspect.signature(cls.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise UsageError(f"optimizer {name} needs a closure, which the engine doesn't give")
    return cls


def _class_at(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"optimizer {name}: {error}") from None
    if not (inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer)):
        raise UsageError(f"optimizer {name} is no torch.optim.Optimizer")
    return cls


def _torch_class(name: str) -> Any:
    classes = {
        n.lower(): c
        for n, c in vars(torch.optim).items()
        if inspect.isclass(c) and issubclass(c, torch.optim.Optimizer) and n != "Optimizer"
    }
    if name.lower() not in classes:
        raise unknown("optimizer", name, {*OWN, *classes})
    return classes[name.lower()]


def _subtract(flat: Tensor, delta: Tensor, alive: Tensor) -> None:
    torch.where(alive.unsqueeze(1), flat - delta, flat, out=flat)
