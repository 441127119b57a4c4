"""Capabilities: optional protocols that a module may implement besides `forward`.

The harness asks for them only through `offers`. A module that offers none can still be trained,
evaluated and published.
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

    `replicas` is `alone` (one model, called directly), `vmapped` (inside `torch.vmap`), or
    `leading` (parameters, buffers, the prompt and the prediction have a leading dimension R).
    `batch_size` is the usual number of prompts per call; a module must be correct for any size.
    `autocast` is autocast's dtype, or None. `compiled` means that `torch.compile` traces the call.
    `factored_logits` means that the loss accepts `FactoredLogits`. A mixer also gets the `length`
    of the sequence and the `positions` whose output is used, None for all. With positions it maps
    (B, S, width) to (B, P, width).
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
        """Whether operators without a vmap rule or a second derivative are allowed."""
        return self.replicas != "vmapped" and not self.compiled


@runtime_checkable
class TrainsFaster(Protocol):
    """A module with a faster form for training."""

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """Return a module with the same predictions for training, or None if there is none.

        The returned module holds the same Parameter objects and buffers, under any names, and
        nothing derived from them, so that both see an optimizer's steps. It need not be twice
        differentiable if `context.takes_any_operator`. After None, training calls this module,
        but never with leading replicas or for `positions`.
        """
        ...


@runtime_checkable
class ExtendsPositions(Protocol):
    """A causal mixer that continues from earlier positions, for generation with a cache."""

    #: Whether this instance can continue from earlier positions.
    extends: bool

    def extend(self, x: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Mix t further positions: map x (B, t, width) and a cache to y (B, t, width) and a cache.

        The mixer chooses what the cache is. It is None at the first call.
        """
        ...


class Decoder(Protocol):
    """Reads a text in parts and predicts the next id."""

    def advance(self, ids: Tensor) -> Tensor:
        """Append ids (B, t), t ≥ 1, and return the logits (B, V) of the next id."""
        ...


@runtime_checkable
class Decodes(Protocol):
    """A model for target `token` that generates without rereading the text at every step."""

    def decoder(self) -> Decoder | None:
        """Return a new decoder, or None if this instance has none."""
        ...


@runtime_checkable
class ShowsStates(Protocol):
    """A sequence model that shows its states, so that causality is checked at every position."""

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """Return the last layer's states (B, S, width) of features (B, S, d) and ids (B, S)."""
        ...


@runtime_checkable
class ShowsIterates(Protocol):
    """A model that iterates, whose estimates metrics compare with those of algorithms."""

    @property
    def iterates(self) -> int:
        """T, the number of iterations."""
        ...

    def trajectory(self, prompt: Any) -> Tensor:
        """Return the estimates of the weights or the solution, (B, T + 1, D), from the start."""
        ...


@runtime_checkable
class StatesSize(Protocol):
    """A mixer or a model that tells how large a state it carries from position to position."""

    def state_sizes(self, length: int) -> tuple[int, ...] | None:
        """Return how many numbers per prompt each layer keeps after reading `length` positions.

        They are all that later outputs can depend on: keys and values for softmax attention, which
        grow with the length, a matrix per head for linear attention, and in each case the inputs
        that a short convolution still needs. Parameters do not count. A mixer is one layer; a model
        has one number for each layer that it runs. None: this instance can't tell.
        """
        ...


#: Every capability.
CAPABILITIES = (
    TrainsFaster,
    ExtendsPositions,
    Decodes,
    ShowsStates,
    ShowsIterates,
    StatesSize,
)


def offers(module: nn.Module, capability: type[Any]) -> bool:
    """Whether a module offers one of `CAPABILITIES`.

    Raises PluginError if it has only some of the members, or a method takes other arguments.
    """
    members = _members(capability)
    present = [name for name in members if _has(module, name)]
    if not present:
        return False
    class_name = type(module).__name__
    offered = ", ".join(f"`{name}`" for name in present)
    missing = [f"`{name}`" for name in members if name not in present]
    if missing:
        raise PluginError(
            f"{class_name} offers {offered} but not {', '.join(missing)}; "
            f"{capability.__name__} needs both"
        )
    for name in members:
        problem = _mismatch(getattr(module, name), getattr(capability, name, None))
        if problem is not None:
            raise PluginError(f"{class_name} offers {capability.__name__}, but `{name}` {problem}")
    return True


def _members(capability: type) -> list[str]:
    names = [*capability.__annotations__, *vars(capability)]
    return [name for name in names if not name.startswith("_")]


def _has(module: nn.Module, name: str) -> bool:
    """Whether a module has an attribute that is no submodule and not from one of torch's classes.

    `nn.Sequential` and `nn.ModuleList`, for example, have an unrelated `extend`, and a layer may
    well be called `hidden` or `decoder`.
    """
    if name in dict(module.named_children()):
        return False
    for owner in type(module).__mro__:
        if name in vars(owner):
            return not owner.__module__.startswith("torch.")
    return hasattr(module, name)


def _mismatch(value: Any, declared: Any) -> str | None:
    """Return how a member differs from the declared one, or None."""
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
