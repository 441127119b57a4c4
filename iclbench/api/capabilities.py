"""Capabilities: what a module of a plugin may offer beside `forward`.

Each is a protocol with one or two methods. The harness asks for them here and nowhere else; a
module that offers none is still trained, evaluated and published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import nn


@dataclass(frozen=True)
class TrainingContext:
    """How a module will be called in training.

    `replicas` is `alone` (one model, called as it is), `vmapped` (called inside `torch.vmap`), or
    `leading` (parameters and prompts both have a leading dimension R). `positions` are the
    positions of the sequence whose output is used; None means all of them.
    """

    device: torch.device
    dtype: torch.dtype
    batch_size: int
    replicas: Literal["alone", "vmapped", "leading"] = "alone"
    autocast: torch.dtype | None = None
    compiled: bool = False
    factored_logits: bool = False
    positions: slice | None = None


@runtime_checkable
class TrainsFaster(Protocol):
    """A module with a faster form for training."""

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """Return a module that computes the same in training, or None if it can't here.

        The returned module must hold the same Parameter objects and nothing derived from them, so
        that an optimizer's step is seen by both. `self` is always a valid answer when
        `context.replicas` is not `leading` and `context.positions` is None.
        """
        ...
