"""Metric: a measurement beyond the task's own metrics, requested by `--metrics NAME`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from .evaluation import EvaluationContext, predict
from .prompts import Batch

if TYPE_CHECKING:
    from torch import nn

    from .scoring import Axis
    from .task import Task


class Metric(ABC):
    """Values per prompt, in addition to the task's own metrics.

    Override `score` if the values follow from the predictions, and `compute` if the metric asks
    the model anything else.
    """

    #: What users type: lower-case words joined by hyphens.
    name: ClassVar[str]
    #: Values that are fractions, from 0 to 1. Intervals of their means stay within.
    fractions: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def supports(self, task: Task[Any]) -> str | None:
        """Return None, or why this metric does not apply to the task."""

    def supports_model(self, model: nn.Module) -> str | None:
        """Return None, or what the model lacks. Called before training."""
        return None

    def axes(self, model: nn.Module) -> Mapping[str, Axis]:
        """Return the second axis of every value that has one, by name."""
        return {}

    def score(self, prediction: Tensor, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """Return the values of a prediction (B, P, W) that the evaluation has already made.

        It is float64 on the CPU, as are the values: (B,) by name, or (B, n) for a name in `axes`.
        """
        return {}

    def compute(
        self, model: nn.Module, task: Task[Any], batch: Batch, context: EvaluationContext
    ) -> dict[str, Tensor]:
        """Return float64 values (B,) on the CPU by name, or (B, n) for a name in `axes`.

        By default those of `score`. `predict(model, batch.prompt, context)` is the prediction that
        the task's own metrics have used, and costs nothing; but a task that evaluates in parts, as
        `TokenTask` does, computes it again, for all prompts at once: where a vocabulary is large,
        override this method.
        """
        if type(self).score is Metric.score:
            return {}
        return self.score(predict(model, batch.prompt, context), task, batch)

    def floor(self, model: nn.Module, task: Task[Any], batch: Batch) -> dict[str, Tensor]:
        """Return the same values for the reference, computed in the prompt's dtype, if any."""
        return {}

    def analysis(
        self, model: nn.Module, task: Task[Any], batches: list[Batch], context: EvaluationContext
    ) -> dict[str, Any]:
        """Return results about the model as a whole: JSON whose numbers are finite or None.

        `maps` may list matrices for figures: {name, values}, and optionally x and y (labels of
        columns and rows), points {x, y, text}, and group (maps in a group share a colour scale).
        """
        return {}
