"""Metric: a measurement that applies to any model of a kind, asked for by `--metrics NAME`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from .prompts import Batch, Signature

if TYPE_CHECKING:
    from .tasks import Axis, EvaluationContext, Model, Task


class Metric(ABC):
    """Values for each prompt beside the task's own metrics."""

    name: ClassVar[str]

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The second axis of each value that has one."""
        return {}

    @abstractmethod
    def supports(self, signature: Signature) -> str | None:
        """None, or the reason why this metric doesn't apply to the signature."""

    @abstractmethod
    def compute(
        self, model: Model, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """name → float64 values (B,) on the CPU, or (B, n) for a name in `axes`."""
