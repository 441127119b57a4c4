"""Figure: what a sweep's figure shows; `leaderboards.figures` draws it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from ..api.config import Config
from ..api.errors import UsageError, unknown
from ..api.record import Record
from ..api.spec import ResolvedSpec
from .fields import ARGUMENTS, Names, omitted_arguments, require_field

#: What `x` may be besides a field of the spec: a metric's second axis, the steps of training with
#: its loss, or what training cost up to each point of the validation curve.
CURVE, TRAINING = "curve", "training"
COSTS = ("operations", "seconds", "steps")
NOT_FIELDS = (CURVE, TRAINING, *COSTS)


class Figure(Config):
    """One line per value of `lines`, with the range over seeds as bars, and the floor.

    Several metrics make panels stacked vertically, and the values of `panels` make panels side by
    side. With `maps`, the figure shows the matrices of a metric's analyses instead of lines.
    """

    x: str | None = Field(
        None,
        description="a field such as model_args.layers; state_bytes: the size of a layer's "
        "state; curve: the second axis of y; training: the loss; operations, seconds or steps: the "
        "validation against the cost of one seed",
    )
    y: Names | None = Field(
        None, description="one metric or several; null: the metric that the task ranks by"
    )
    statistic: Literal["mean", "median"] | None = Field(
        None,
        description="statistic of y; null: the mean, or mean digits or else the median if the task "
        "ranks by digits; of a curve: the median of errors, the mean of other metrics",
    )
    lines: Names = Field(("model",), description="fields; each value gets its own line")
    panels: Names = Field((), description="fields; each value gets its own panel")
    lacks: Names = Field(
        (), description="fields such as weights; a record that has one of them is left out"
    )
    shifts: Names = Field(
        (),
        description="evaluations side by side in panels: names of shifts, or main for the task's "
        "own distribution; default: main",
    )
    log_x: bool | None = Field(None, description="logarithmic x axis; null: for costs and states")
    log_y: bool | None = Field(
        None,
        description="logarithmic y axis, except for digits; null: if the task ranks by digits",
    )
    maps: str | None = Field(
        None, description="a metric whose analyses hold maps: one row of maps per record"
    )
    title: str = ""

    @model_validator(mode="after")
    def _fields_exist(self) -> Figure:
        if (self.x is None) == (self.maps is None):
            raise ValueError("a figure needs either x or maps")
        if self.shifts and (self.panels or self.maps or self.x in {TRAINING, *COSTS}):
            raise ValueError(
                "shifts make panels of metrics: leave out panels, maps, training and costs"
            )
        for name in ("y", "statistic") if self.x in {TRAINING, *COSTS} or self.maps else ():
            if getattr(self, name) is not None:
                raise ValueError(f"{name} does not apply to {self.x or 'maps'}")
        for name in (*self.lines, *self.panels, *self.lacks):
            require_field(name)
        if self.x is not None:
            require_field(self.x, also=NOT_FIELDS)
        return self

    def require_arguments(self, specs: Iterable[ResolvedSpec]) -> None:
        """Raise UsageError for arguments that none of the figure's specs has."""
        known: dict[str, set[str]] = {}
        for spec in specs:
            for group in ARGUMENTS:
                omitted = {k for k, v in omitted_arguments(spec, group).items() if v is not None}
                known.setdefault(group, set()).update(getattr(spec, group), omitted)
        for name in (*self.lines, *self.panels, *self.lacks, self.x or ""):
            group, _, key = name.partition(".")
            if key and known and key not in known[group]:
                raise UsageError(f"figure: {unknown(f'argument in {group}', key, known[group])}")

    def require_results(self, record: Record) -> None:
        """Raise UsageError for a metric or an analysis that the record lacks.

        Only a record tells what a run measured.
        """
        if self.maps is not None and self.maps not in record.analyses:
            raise UsageError(f"figure: {unknown('analysis', self.maps, list(record.analyses))}")
        for name in self.metrics:
            if name is not None and name not in record.metrics:
                raise UsageError(f"figure: {unknown('metric', name, list(record.metrics))}")

    @property
    def metrics(self) -> list[str | None]:
        """The metrics shown, one row of panels each; None is the one that the task ranks by."""
        if self.maps is not None or self.x in {TRAINING, *COSTS} or self.y is None:
            return [None]
        return list(self.y)
