"""Scoring: what a task's metrics are, and what they can at best and at worst be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from .digits import ErrorKind, Statistic
from .evaluation import EvaluationContext
from .floor import FLOOR_NAMES, FloorKind
from .prompts import Batch, Signature, real_dtype

#: An error of a kind is proportional to this power of the distance.
POWERS: Mapping[ErrorKind, int] = {"squared": 2, "absolute": 1}

Distance = Callable[[Tensor], Tensor]
"""Maps true values (B, …) to distances from them, of the same shape."""

#: Errors at a distance are measured at this many times the distance: half a unit in the last place
#: of a float64 can't be added to it.
MAGNIFICATION = 2.0**26


class Primary(NamedTuple):
    """The metric that a task ranks by, and which direction is better."""

    metric: str
    better: Literal["lower", "higher"] = "lower"


class Axis(NamedTuple):
    """The second axis of a metric: its name (prefix, iterate, size) and its values."""

    name: str
    values: tuple[float, ...]


class Scoring(ABC):
    """The part of a task that scores predictions."""

    #: Metrics that are errors, and whether they are squared. Only errors have digits, are limited
    #: to what rounding allows, and stay finite where a prediction is not. An error must be
    #: proportional to the distance from the truth, or to its square.
    errors: ClassVar[Mapping[str, ErrorKind]] = {"squared_error": "squared"}
    #: Metrics that are fractions, from 0 to 1, such as an accuracy. Intervals stay within.
    fractions: ClassVar[frozenset[str]] = frozenset()
    #: What the floor is, in one sentence for the table in the docs.
    floor_summary: ClassVar[str] = ""

    @property
    def primary(self) -> Primary:
        """The metric that leaderboards rank by."""
        return Primary("squared_error")

    @property
    def floor_kind(self) -> FloorKind:
        """What the floor of the primary metric is; it may depend on the configuration."""
        return "none"

    @property
    def floor_name(self) -> str:
        """The name of the floor's row in tables."""
        return FLOOR_NAMES[self.floor_kind]

    @property
    def statistic(self) -> Statistic:
        """What is ranked: the mean of the digits where rounding is the floor, else of the metric.

        Errors that can reach rounding span orders of magnitude; a few large ones decide their mean.
        """
        is_error = self.primary.metric in self.errors
        return "mean digits" if is_error and self.floor_kind == "exact" else "mean"

    @property
    @abstractmethod
    def signature(self) -> Signature:
        """The static facts that a model is built for."""

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The second axis of each metric that has one."""
        return {}

    @abstractmethod
    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The training loss of each prompt, (B,)."""

    @abstractmethod
    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """float64 values for each prompt, (B,), or (B, n) for a metric named in `axes`.

        `prediction` is float64 on the CPU, as is `batch`.
        """

    def errors_at(self, batch: Batch, distance: Distance) -> dict[str, Tensor]:
        """The errors of predictions that are off by `distance` in every number.

        By default these are the metrics of the target plus its distance. Override it for an error
        that is measured against anything but `batch.target`, and apply `distance` to that.
        """
        if not batch.target.is_floating_point():
            return {}
        moved = self.metrics(batch.target + MAGNIFICATION * distance(batch.target), batch)
        return {
            name: moved[name] / MAGNIFICATION ** POWERS[kind]
            for name, kind in self.errors.items()
            if name in moved
        }

    def exact_answer(self, batch: Batch) -> Tensor:
        """The exact answer to the rounded prompt, rounded once to float64, (B, P, W).

        The default is the target, as it should be where the rounded prompt determines it. Kind
        `exact` only; see `iclbench.exact_solve` and its neighbours.
        """
        return batch.target

    def reference(self, batch: Batch) -> Tensor | None:
        """The prediction whose metrics are the floor if it is not exact; None if there is none."""
        return None

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The metrics of the exact answer, rounded once to the prompt's dtype, or of the reference.

        Override it for a bound on the metrics; {} where there is neither.
        """
        if self.floor_kind == "exact":
            return self.metrics(
                self.exact_answer(batch).to(real_dtype(batch.prompt)).double(), batch
            )
        reference = self.reference(batch)
        return {} if reference is None else self.metrics(reference.to("cpu", torch.float64), batch)

    def chance(self, batch: Batch) -> dict[str, Tensor]:
        """The metrics of a simple prediction that ignores the examples.

        The default predicts zero, which as logits gives every class the same probability. Where
        another prediction without examples is better, override it. Suites name a solver instead.
        """
        target = batch.target
        if target.is_floating_point():
            return self.metrics(torch.zeros_like(target), batch)
        logits = torch.zeros(*target.shape, self.signature.output_width, dtype=torch.float64)
        return self.metrics(logits, batch)
