"""Capabilities: what a module may offer beside `forward`.

Each is a protocol with one or two members. The harness asks for them by `offers` alone; a module
that offers none is still trained, evaluated and published.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from .errors import PluginError


@dataclass(frozen=True)
class TrainingContext:
    """How a module will be called in training.

    `replicas` is `alone` (one model, called as it is), `vmapped` (inside `torch.vmap`), or
    `leading` (parameters, buffers, the prompt and the prediction have a leading dimension R).
    `batch_size` is the usual number of prompts per call; a module must be correct for any.
    `autocast` is the dtype that autocast computes in, or None. `compiled` says that `torch.compile`
    traces the call. `factored_logits` says that the loss takes `FactoredLogits`. A mixer is also
    told the `length` of the sequence and the `positions` whose output is used, None for all: it
    then maps (B, S, width) to (B, P, width).
    """

    device: torch.device
    dtype: torch.dtype
    batch_size: int
    replicas: Literal["alone", "vmapped", "leading"] = "alone"
    autocast: torch.dtype | None = None
    compiled: bool = False
    factored_logits: bool = False
    length: int | None = None
    positions: slice | None = None

    @property
    def takes_any_operator(self) -> bool:
        """Whether operators may be used that have no rule for vmap or a second derivative."""
        return self.replicas != "vmapped" and not self.compiled


@runtime_checkable
class TrainsFaster(Protocol):
    """A module with a faster form for training."""

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """Return a module that computes the same in training, or None if there is none.

        The returned module holds the same Parameter objects, under any names, and nothing derived
        from them, so that both see an optimizer's step. It shares buffers too. It need not be
        twice differentiable when `context.takes_any_operator`. None means that there is no other
        form: the module is called itself, but never with leading replicas or for `positions`.
        """
        ...


@runtime_checkable
class ExtendsPositions(Protocol):
    """A causal mixer that continues from earlier positions, for generation with a cache."""

    #: Whether this instance can.
    extends: bool

    def extend(self, x: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Mix t further positions: x (B, t, width) and the cache give y (B, t, width) and a cache.

        The cache is the mixer's own; it is None at the first call.
        """
        ...


class Decoder(Protocol):
    """Reads a text step by step and predicts the next id."""

    def advance(self, ids: Tensor) -> Tensor:
        """Append ids (B, t), t ≥ 1, and return the logits (B, V) of the id after the last."""
        ...


@runtime_checkable
class Decodes(Protocol):
    """A model that answers `token` and generates without reading the whole text at each step."""

    def decoder(self) -> Decoder | None:
        """Return a new decoder, or None if this instance has none."""
        ...


@runtime_checkable
class ShowsStates(Protocol):
    """A sequence model that shows its states, in which a look ahead is found at any position."""

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """Return the last layer's states (B, S, width) of features (B, S, d) and ids (B, S)."""
        ...


@runtime_checkable
class ShowsIterates(Protocol):
    """A model that approaches its answer by iterations, which metrics compare with algorithms."""

    @property
    def iterates(self) -> int:
        """T, the number of iterations."""
        ...

    def trajectory(self, prompt: Any) -> Tensor:
        """Return the estimates of the weights or the solution, (B, T + 1, D), the start first."""
        ...


#: Every capability.
CAPABILITIES = (TrainsFaster, ExtendsPositions, Decodes, ShowsStates, ShowsIterates)


def offers(module: nn.Module, capability: type[Any]) -> bool:
    """Whether a module offers a capability, one of `CAPABILITIES`.

    Raises PluginError if it has some members but not all, or a method takes other arguments.
    """
    members = _members(capability)
    present = [name for name in members if _has(module, name)]
    if not present:
        return False
    owner, offered = type(module).__name__, ", ".join(f"`{name}`" for name in present)
    missing = [f"`{name}`" for name in members if name not in present]
    if missing:
        raise PluginError(
            f"{owner} offers {offered} but not {', '.join(missing)}; {capability.__name__} needs "
            "both"
        )
    for name in members:
        problem = _mismatch(getattr(module, name), getattr(capability, name, None))
        if problem is not None:
            raise PluginError(f"{owner} offers {capability.__name__}, but `{name}` {problem}")
    return True


def _members(capability: type) -> list[str]:
    names = [*capability.__annotations__, *vars(capability)]
    return [name for name in names if not name.startswith("_")]


def _has(module: nn.Module, name: str) -> bool:
    """Whether a module has an attribute that torch's own classes did not give it.

    `nn.Sequential` and `nn.ModuleList` have an `extend` of their own.
    """
    for owner in type(module).__mro__:
        if name in vars(owner):
            return not owner.__module__.startswith("torch.")
    return hasattr(module, name)


def _mismatch(value: Any, declared: Any) -> str | None:
    """How a member differs from the declared one, or None."""
    if not inspect.isfunction(declared):
        return "is a method, not a value" if callable(value) else None
    if not callable(value):
        return "is not a method"
    arguments = list(inspect.signature(declared).parameters)[1:]
    try:
        inspect.signature(value).bind(*arguments)
    except TypeError:
        return f"does not take ({', '.join(arguments)})"
    return None
