"""Metric: a measurement that applies to any model of a kind, asked for by `--metrics NAME`."""

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
    """Values for each prompt beside the task's own metrics."""

    name: ClassVar[str]

    @abstractmethod
    def supports(self, task: Task[Any]) -> str | None:
        """None, or the reason why this metric doesn't apply to the task."""

    def supports_model(self, model: nn.Module) -> str | None:
        """None, or what the model lacks; asked before anything is trained."""
        return None

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """The second axis of each value that has one."""
        return {}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """name → float64 values (B,) on the CPU, (B, n) for a name in `axes`; none by default."""
        return {}

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """The same values of what the model is compared with, in the prompt's dtype, if any."""
        return {}

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """What is to be said of the model as a whole: JSON, its numbers finite or None.

        Under `maps` it may list matrices that figures draw: {name, values}, and if wanted x and y
        (what columns and rows stand for), points {x, y, text}, and group (one scale of colours).
        """
        return {}
