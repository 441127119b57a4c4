"""One record as tables: its metrics with their floors, its curves and its analyses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..api.record import Record
from ..api.statistics import Statistics
from ..console import counted
from ..leaderboards import formats
from ..leaderboards.bounds import digits_bounds, mean_bounds
from ..leaderboards.floor import floor_label
from ..leaderboards.formats import BOUNDS_LEGEND, DIGITS, digits, interval
from ..leaderboards.values import single_numbers
from .table import Cell, Column, Table

Line = dict[str, Any]


def title_of(record: Record) -> str:
    """What the record is of."""
    spec = record.spec
    model = f"{spec.model} on {spec.task} v{spec.task_version}"
    return f"{model} · {spec.origin} · {spec.dtype} · {counted(record.main.prompts, 'prompt')}"


def facts_of(record: Record) -> Iterator[str]:
    """The command of the record, and what training and grading took, a paragraph each."""
    yield f"$ {record.command}"
    training = record.training
    if training is not None:
        seeds = counted(len(record.seeds), "seed")
        yield (
            f"trained {seeds} for {counted(training.steps, 'step')} of "
            f"{counted(training.batch, 'prompt')} in "
            f"{formats.seconds(training.seconds)} ({training.engine}, {record.environment.device})"
        )
        diverged = [str(s.seed) for s in record.seeds if s.diverged_at is not None]
        if diverged:
            yield f"diverged: seed {', '.join(diverged)}"
    grader = record.grader
    if grader is None:
        return
    facts = [f"graded by {grader.name}"]
    facts += [grader.model] if grader.model else []
    facts += [f"prompt {grader.prompt[:8]}"] if grader.prompt else []
    reasons = ", ".join(f"{count} × {reason}" for reason, count in grader.reasons.items())
    failed = f"{grader.failures} of {grader.completions} endings failed"
    facts.append(f"{failed} ({reasons})" if reasons else failed)
    if grader.cost is not None:
        usd = "unknown cost" if grader.cost.usd is None else f"{grader.cost.usd:.4f} USD"
        facts.append(f"{grader.cost.requests} answers, {usd}")
    yield " · ".join(facts)


def metrics_table(record: Record) -> Table:
    """Every metric above its floor: digits and means with their intervals, and quantiles."""
    seeds = sum(seed.seed is not None for seed in record.seeds)
    lines = []
    for name, statistics in record.metrics.items():
        lines.append(_metric(record, name, statistics, seeds))
        if name in record.floor:
            floor = _metric(record, name, record.floor[name], 0)
            label = floor_label(record)
            lines.append({**floor, "metric": Cell(f"  {label}", f"{name}, {label}", "italic")})
    # On a narrow terminal the number that ranks stays longest, and next its interval.
    mean = record.ranking.statistic == "mean"
    columns = (
        *(Column(name, extra=True) for name in ("record", "model", "task")),
        Column("metric"),
        Column("digits", right=True, importance=4 if mean else 0),
        Column(
            "interval of digits",
            right=True,
            importance=5 if mean else 1,
            label="95% interval of digits",
        ),
        Column("median", right=True, importance=2),
        Column("mean", right=True, importance=0 if mean else 3),
        Column(
            "interval of mean",
            right=True,
            importance=1 if mean else 8,
            label="95% interval of mean",
        ),
        Column("99%", right=True, importance=6, label="99% quantile"),
        Column("largest", right=True, importance=7),
        Column("1%", right=True, importance=9, label="1% quantile"),
        *(Column(name, right=True, extra=True) for name in ("digits low", "digits high")),
        *(Column(name, right=True, extra=True) for name in ("low", "high")),
    )
    marks = "".join(
        str(line.get(f"interval of {of}")) for line in lines for of in ("digits", "mean")
    )
    return Table(columns, lines, notes=(DIGITS, *bounds_legend(marks)))


def bounds_legend(marks: str) -> list[str]:
    """The legend of those marks of intervals that occur in `marks`; empty if none does."""
    parts = [part for part in BOUNDS_LEGEND.split(" · ") if part[0] in marks]
    return [f"{' · '.join(parts)}."] if parts else []


def _metric(record: Record, name: str, s: Statistics, seeds: int) -> Line:
    line = {
        "record": record.id,
        "model": record.spec.model,
        "task": record.spec.task,
        "metric": Cell(name, name, "bold"),
        "mean": number(s.mean),
        "interval of mean": interval(mean_bounds(s), seeds=seeds),
        "low": s.low,
        "high": s.high,
        "1%": number(s.q01),
        "median": number(s.median),
        "99%": number(s.q99),
        "largest": number(s.max),
    }
    if s.digits is not None:
        line["digits"] = Cell(digits(s.digits.mean), s.digits.mean)
        line["interval of digits"] = interval(digits_bounds(s.digits), digits, seeds)
        line |= {"digits low": s.digits.low, "digits high": s.digits.high}
    return line


def number(value: float | None) -> Cell:
    """A number in scientific notation, or NOT_FINITE."""
    return Cell(formats.number(value), value)


def curve_table(record: Record, name: str) -> Table:
    """A metric along its second axis, with its floor."""
    curve = record.curves[name]
    floor = record.main.floor.curves.get(name)
    lines = []
    for i, at in enumerate(curve.values):
        line: Line = {
            curve.axis: Cell(f"{at:g}", at),
            "median": number(curve.median[i]),
            "mean": number(curve.mean[i]),
            "largest": number(curve.max[i]),
        }
        if floor is not None:
            line["floor median"] = number(floor.median[i])
            line["floor largest"] = number(floor.max[i])
        lines.append(line)
    names = ("median", "mean", "largest", *(("floor median", "floor largest") if floor else ()))
    columns = [Column(curve.axis, right=True), *(Column(n, right=True) for n in names)]
    return Table(columns, lines, title=f"{name} by {curve.axis}")


def analysis_table(record: Record, name: str) -> Table:
    """The single numbers of an analysis: a line each, a column per seed."""
    labels = ["value" if s.seed is None else f"seed {s.seed}" for s in record.seeds]
    analyses = zip(labels, record.analyses[name], strict=True)
    by_seed = {label: dict(single_numbers(analysis)) for label, analysis in analyses}
    keys = dict.fromkeys(key for numbers in by_seed.values() for key in numbers)
    lines = [
        {name: key, **{label: number(numbers.get(key)) for label, numbers in by_seed.items()}}
        for key in keys
    ]
    columns = [Column(name, fit="wrap")]
    columns += [Column(label, right=True, importance=i) for i, label in enumerate(labels)]
    return Table(columns, lines)
