"""Shift: a named evaluation distribution of a task other than the one that models train on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .draws import Draws, Random


@dataclass(frozen=True)
class Shift:
    """How prompts of a shifted evaluation differ; nothing of it reaches training.

    `task_args` replaces arguments of the task, and `change` maps the draws of a batch to other
    draws. It may draw further quantities, under names that the task's own `draw` does not use. It
    acts before rounding, so that a prompt's target is that of the changed, rounded prompt.
    `scales_targets` says that errors are better read beside the size of the targets.
    """

    summary: str
    task_args: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Draws, Random], Draws] | None = None
    scales_targets: bool = False
