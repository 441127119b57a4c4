"""Metric: a measurement that applies to any model of a kind, requested by `--metrics NAME`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from .prompts import Batch

if TYPE_CHECKING:
    from torch import nn

    from .evaluation import EvaluationContext
    from .task import Axis, Task


class Metric(ABC):
    """Values for each prompt, in addition to the task's own metrics."""

    name: ClassVar[str]

    @abstractmethod
    def supports(self, task: Task[Any]) -> str | None:
        """None, or the reason why this metric does not apply to the task."""

    def supports_model(self, model: nn.Module) -> str | None:
        """None, or what the model lacks. Called before anything is trained."""
        return None

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """The second axis of each value that has one."""
        return {}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """name → float64 values (B,) on the CPU, or (B, n) for a name in `axes`."""
        return {}

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """The same values for the reference that the model is compared with, if there is one.

        They are computed in the dtype of the prompt.
        """
        return {}

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """Results about the model as a whole: JSON whose numbers are finite or None.

        `maps` may list matrices for figures: {name, values}, and optionally x and y (labels of
        columns and rows), points {x, y, text}, and group (maps that share a colour scale).
        """
        return {}
