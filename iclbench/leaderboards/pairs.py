"""compare: two records on the prompts that they share, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..api.digits import digits
from ..api.errors import UsageError
from ..api.record import Record
from ..runs.prompt_values import floor_values, prompt_values
from ..runs.statistics import GRADE
from ..runs.store import read_record
from .arguments import argument
from .board import grader_facts
from .bounds import digits_bounds, mean_bounds
from .groups import graded_in_all
from .paired import difference
from .ranking import ranked_values
from .representative import is_one_training

if TYPE_CHECKING:
    import pandas as pd


def compare(a: Record | str | Path, b: Record | str | Path) -> pd.DataFrame:
    """The paired differences a − b of every metric that two records share, one line each.

    The columns are `statistic` (for the metric that ranks, what boards rank by; else mean digits
    for an error and the mean for any other metric), `a`, `b`, `difference` with the 95% interval
    `low` … `high` over seeds and prompts, the two-sided `p`, and `better`: a or b where the
    difference is significant, in errors and in the metric that ranks; of others it is not known
    which direction is better. `better` is also empty, and `note` says why, where few values or
    seeds dominate the mean of either. Where nothing follows, since values are not finite or seeds
    too few, `low`, `high` and `p` are NaN, with a note. `p` is not corrected for the other lines.

    A single trained seed is taken as it is: its difference holds for that seed, and says nothing of
    which model is better. In the metric that ranks, digits within one of the attainable error count
    as that, as on boards. Grades of two graders have no line.

    Raises UsageError unless both were evaluated on the same prompts, targets and dtype.
    """
    import pandas as pd

    first, second = (x if isinstance(x, Record) else read_record(x) for x in (a, b))
    return pd.DataFrame(paired_lines(first, second)).set_index("metric")


def paired_lines(first: Record, second: Record) -> list[dict[str, Any]]:
    """The lines of `compare` by the names of its columns; raises UsageError."""
    for what, x, y in (
        ("tasks", _task(first), _task(second)),
        ("task arguments", *_differing(first.main.task_args, second.main.task_args)),
        ("numbers of prompts (--eval-prompts)", first.main.prompts, second.main.prompts),
        ("evaluation seeds (--eval-seed)", first.spec.eval_seed, second.spec.eval_seed),
        ("prompts", first.main.digest[:12], second.main.digest[:12]),
        ("dtypes", first.spec.dtype, second.spec.dtype),
    ):
        if x != y:
            hint = "; a recipe may set some: give both runs the same" if "arg" in what else ""
            raise UsageError(
                f"the records can't be compared: their {what} differ, {x} and {y}{hint}"
            )
    alike = grader_facts(first) == grader_facts(second)
    shared = [
        n for n in first.metrics if n in second.metrics and (alike or not n.startswith(GRADE))
    ]
    if not shared:
        raise UsageError("the records can't be compared: no metric is in both")
    return [_line(first, second, name) for name in shared]


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of each that differ from the other's, as `name=value, …`."""
    for args, others in ((first, second), (second, first)):
        pairs = [(k, v) for k, v in args.items() if k not in others or others[k] != v]
        yield ", ".join(f"{name}={argument(value)}" for name, value in pairs) or "none"


def _task(record: Record) -> str:
    return f"{record.spec.task} v{record.spec.task_version}"


def _line(first: Record, second: Record, name: str) -> dict[str, Any]:
    in_digits = first.metrics[name].digits is not None
    if name == first.ranking.metric:
        in_digits = first.ranking.has_digits
    values = [_values(record, name, in_digits) for record in (first, second)]
    if name.startswith(GRADE):
        graded = graded_in_all(values)
        values = [part[:, graded] for part in values]
    # Where more is better, the sign of the difference says which record is.
    more = in_digits or (name == first.ranking.metric and first.ranking.better == "higher")
    paired = difference(*values, in_digits=in_digits)
    better = ""
    one_seed = is_one_training(first) or is_one_training(second)
    reliable = all(_is_reliable(record, name, in_digits) for record in (first, second))
    ranks = more or name == first.ranking.metric
    if reliable and not one_seed and paired.is_significant and ranks:
        better = "a" if (paired.mean > 0) == more else "b"
    return {
        "metric": name,
        "statistic": "mean digits" if in_digits else "mean",
        "a": float(values[0].mean()),
        "b": float(values[1].mean()),
        "difference": paired.mean,
        "low": paired.low,
        "high": paired.high,
        "p": paired.p,
        "better": better,
        "note": _note(values, np.isfinite(paired.low), reliable),
    }


def _is_reliable(record: Record, name: str, in_digits: bool) -> bool:
    """Whether the interval of what is compared can be trusted for the record alone."""
    statistics = record.metrics[name]
    of_digits = in_digits and statistics.digits is not None
    return (digits_bounds(statistics.digits) if of_digits else mean_bounds(statistics)).reliable


def _note(values: Sequence[np.ndarray], has_interval: bool, reliable: bool) -> str:
    if not has_interval and not all(np.isfinite(part).all() for part in values):
        return "no interval: values that are not finite"
    if not has_interval and values[0].shape[1] < 2:
        return "no interval: one prompt"
    if not has_interval:
        return "no interval: two prompts, or numbers too large"
    return "" if reliable else "a mean that few values or seeds dominate"


def _values(record: Record, name: str, in_digits: bool) -> np.ndarray:
    """What is compared: (seeds, prompts) values, or the digits of an error."""
    measured = prompt_values(record.path, record, name)
    kind = record.metrics[name].digits
    if kind is None or not in_digits:
        return measured
    reached = digits(measured, kind.error)
    floor = record.main.floor
    ranks = name == record.ranking.metric and record.ranking.has_digits
    if not ranks or floor.kind != "exact" or name not in floor.values:
        return reached
    return ranked_values(reached, digits(floor_values(record.path, record, name), kind.error))
