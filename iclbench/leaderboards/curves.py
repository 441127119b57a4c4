"""Learning curves that were evaluated: how good models became, and at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..api.costs import SCORES, ValidationCurve
from ..api.record import Record
from ..api.spec import canonical_json
from ..api.statistics import finite

if TYPE_CHECKING:
    import pandas as pd

#: The costs that a curve is known against, with their titles.
COST_TITLES = {
    "operations": "floating-point operations per seed",
    "seconds": "seconds of the budget per seed",
    "steps": "steps",
}


def curve_statistic(metric: str, record: Record) -> Literal["mean", "median"]:
    """The statistic of a curve: of errors, a few of which may be very large, the median.

    The median of a metric of 0 and 1, such as accuracy, would be one of the two.
    """
    is_error = record.metrics[metric].digits is not None or record.ranking.has_digits
    return "median" if is_error else "mean"


class Cost(NamedTuple):
    """What one seed's training cost up to a point; operations are None where unknown."""

    steps: int
    seconds: float
    operations: float | None


def cost_of_digits(curve: ValidationCurve, digits: float) -> Cost | None:
    """What the first point cost whose median over seeds of the mean digits is at least `digits`.

    A later fall does not count. A seed whose score is not finite counts as worse than any. None
    where no point reaches the digits, or the task does not rank by digits.
    """
    if curve.statistic != "mean digits":
        return None
    medians = np.median(seed_scores(curve), axis=0)
    reached = np.flatnonzero(medians >= digits)
    if not reached.size:
        return None
    first = int(reached[0])
    return Cost(curve.steps[first], curve.seconds[first], curve.operations[first])


def seed_scores(curve: ValidationCurve) -> np.ndarray:
    """The mean scores (seeds, points): digits that are not finite are −∞, other scores NaN."""
    by_seed = np.array(curve.mean, dtype=float)  # None becomes NaN
    if curve.statistic == "mean digits":
        by_seed[np.isnan(by_seed)] = -np.inf
    return by_seed


def drawn_curve(record: Record) -> ValidationCurve | None:
    """The record's validation curve, if it has two points: one is no line.

    Where an evaluation takes long beside the training, a curve may have none.
    """
    curve = record.validation_curve
    return curve if curve is not None and len(curve.steps) > 1 else None


def median_curve(curve: ValidationCurve) -> list[float | None]:
    """The median over seeds of the mean scores, at each point; None where it is not finite."""
    return [finite(score) for score in np.median(seed_scores(curve), axis=0)]


def curves_table(records: Iterable[Record]) -> pd.DataFrame:
    """The validation curves of all records: one line for each seed and point."""
    import pandas as pd

    lines = [line for record in records for line in _lines(record)]
    return pd.DataFrame(lines)


def _lines(record: Record) -> Iterator[dict[str, Any]]:
    curve, spec = record.validation_curve, record.spec
    if curve is None:
        return
    about = {
        "id": record.id,
        "task": spec.task,
        "task_version": spec.task_version,
        "task_args": canonical_json(record.main.task_args),
        "train_task_args": canonical_json(spec.task_args),
        "title": record.main.title,
        "evaluation_digest": record.main.digest,
        "dtype": spec.dtype,
        "model": spec.model,
        "model_args": canonical_json(spec.model_args),
        "track": record.track,
        "metric": curve.metric,
        "statistic": curve.statistic,
        "prompts": curve.prompts,
    }
    for index, seed in enumerate(record.seeds):
        for point, step in enumerate(curve.steps):
            yield {
                **about,
                "seed": seed.seed,
                "step": step,
                "seconds": curve.seconds[point],
                "operations": curve.operations[point],
                **{name: getattr(curve, name)[index][point] for name in SCORES},
            }
