"""What the axes of a figure show: the metric, its title, and whether it is on a log scale."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.errors import UsageError, unknown
from ...api.ranking import Ranking
from ...api.record import Record
from ...api.statistics import Statistics
from ...sweeps.fields import STATE, field_of
from ...sweeps.figure import COSTS, CURVE, NOT_FIELDS, TRAINING, Figure
from ..curves import COST_TITLES, curve_statistic


def metric_of(wanted: str | None, record: Record) -> str:
    """The wanted metric, or the one that ranks; raises UsageError if the record lacks it."""
    name = wanted or record.ranking.metric
    if name not in record.metrics:
        raise UsageError(f"figure: {unknown('metric', name, list(record.metrics))}")
    return name


def shown(figure: Figure, statistics: Statistics, record: Record) -> float | None:
    """The number that the figure shows of a metric of the record; None if it is not known."""
    if figure.statistic is None:
        return shown_score(statistics, record.ranking)
    return statistics.mean if figure.statistic == "mean" else statistics.median


def x_title(figure: Figure, metric: str | None, record: Record) -> str:
    """The title of the x axis."""
    if figure.x == CURVE:
        return record.curves[metric_of(metric, record)].axis
    if figure.x == STATE:
        return "state after a prompt, bytes per layer"
    if figure.x in COSTS:
        return COST_TITLES[str(figure.x)]
    return "step" if figure.x == TRAINING else str(figure.x).split(".")[-1]


def y_title(figure: Figure, metric: str | None, record: Record) -> str:
    """The title of the y axis."""
    if figure.x == TRAINING:
        return "training loss"
    if figure.x in COSTS:
        return f"validation: {record.ranking.statistic} of {record.ranking.metric}"
    name = metric_of(metric, record)
    if figure.x == CURVE:
        return f"{figure.statistic or curve_statistic(name, record)} {name}"
    if figure.statistic is not None:
        return f"{figure.statistic} {name}"
    return shown_name(name, record.metrics[name], record.ranking)


def is_log(figure: Figure, metric: str | None, record: Record) -> bool:
    """Whether the y axis is logarithmic.

    Digits are logarithms already; curves and losses of a task that ranks by them span many.
    """
    if figure.x in COSTS:
        return bool(figure.log_y)
    wanted = record.ranking.has_digits if figure.log_y is None else figure.log_y
    return wanted and not in_digits(figure, metric, record)


def in_digits(figure: Figure, metric: str | None, record: Record) -> bool:
    """Whether the y axis shows digits."""
    if figure.x in NOT_FIELDS or figure.statistic is not None or not record.ranking.has_digits:
        return False
    return record.metrics[metric_of(metric, record)].digits is not None


def shown_score(statistics: Statistics, ranking: Ranking) -> float | None:
    """What a figure shows of any metric of a task: where it ranks by digits, those or the median.

    Such tasks have a few very large values, which would be the mean. Others show means.
    """
    if not ranking.has_digits:
        return statistics.mean
    return statistics.digits.mean if statistics.digits else statistics.median


def shown_name(name: str, statistics: Statistics, ranking: Ranking) -> str:
    """The title of `shown_score` for the metric of this name."""
    if not ranking.has_digits:
        return f"mean {name}"
    return f"digits of {name}" if statistics.digits else f"median {name}"


def require_x(x: str, records: Sequence[Record]) -> None:
    """Raise UsageError for a field that no record has, which may be misspelt, and for a table."""
    values = [field_of(record, x) for record in records]
    if all(value is None for value in values):
        raise UsageError(f"figure: no record has {x}")
    if any(isinstance(value, dict) for value in values):
        raise UsageError(f"figure: {x} is a table: name one of its arguments, as {x}.NAME")
