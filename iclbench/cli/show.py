"""`iclbench show`: one record's numbers and curves as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from tabulate import tabulate

from .common import end_with, record_paths

if TYPE_CHECKING:
    from ..api.record import Record
    from ..api.statistics import Statistics

#: One line of a table: a cell per column.
Line = dict[str, object]


def show(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of them.")],
) -> None:
    """Show a record's metrics, floor, curves, the numbers of its analyses, and its weights."""
    from ..leaderboards.reading import sound_records
    from ..runs.objects import Objects

    problems: list[str] = []
    for path, record in sound_records(record_paths(records), problems.append):
        typer.echo(_page(record))
        if record.weights_file is not None:
            typer.echo(f"weights: {Objects.beside(path).path(record.weights_file)}\n")
    end_with(problems)


def _page(record: Record) -> str:
    spec = record.spec
    model = f"{spec.model} on {spec.task} v{spec.task_version}"
    about = f"{model} · {spec.origin} · {spec.dtype} · {record.main.prompts} prompts"
    parts = [about, record.command, *_grading(record), *_statistics(record)]
    for name, curve in record.curves.items():
        parts.append(f"{name} by {curve.axis}\n\n{_table(_curve(record, name))}")
    for name, analyses in record.analyses.items():
        table = _analysis(record, name, analyses)
        if table:
            parts.append(_table(table))
    return "\n\n".join(parts) + "\n"


def _grading(record: Record) -> list[str]:
    """The grader, how many endings it failed on, and what it cost."""
    grader = record.grader
    if grader is None:
        return []
    facts = [f"graded by {grader.name}"]
    facts += [grader.model] if grader.model else []
    facts += [f"prompt {grader.prompt[:8]}"] if grader.prompt else []
    reasons = ", ".join(f"{count} × {reason}" for reason, count in grader.reasons.items())
    failed = f"{grader.failures} of {grader.completions} endings failed"
    facts.append(f"{failed} ({reasons})" if reasons else failed)
    if grader.cost is not None:
        usd = "unknown cost" if grader.cost.usd is None else f"{grader.cost.usd:.4f} USD"
        facts.append(f"{grader.cost.requests} answers, {usd}")
    return [" · ".join(facts)]


def _statistics(record: Record) -> Iterator[str]:
    """Every metric with its floor: means and digits with their intervals, and quantiles."""
    from ..leaderboards.formats import BOUNDS_LEGEND, DIGITS, digits, interval
    from ..leaderboards.row import digits_bounds, floor_label, mean_bounds

    seeds = sum(seed.seed is not None for seed in record.seeds)
    metrics: list[tuple[str, Statistics, int]] = []
    for name, statistics in record.metrics.items():
        metrics.append((name, statistics, seeds))
        if name in record.floor:
            metrics.append((f"  {floor_label(record)}", record.floor[name], 0))
    means: list[Line] = []
    for name, s, count in metrics:
        line: Line = {
            "metric": name,
            "mean": s.mean,
            "95% interval": interval(mean_bounds(s), seeds=count),
        }
        if s.digits is not None:
            bounds = interval(digits_bounds(s.digits), digits, count)
            line |= {"digits": digits(s.digits.mean), "of digits": bounds}
        means.append(line)
    yield f"{_table(means)}\n\n{DIGITS}\n{BOUNDS_LEGEND}."
    yield _table([
        {"metric": name, "1%": s.q01, "median": s.median, "99%": s.q99, "largest": s.max}
        for name, s, _ in metrics
    ])  # fmt: skip


def _curve(record: Record, name: str) -> list[Line]:
    curve = record.curves[name]
    points = zip(curve.values, curve.median, curve.mean, curve.max, strict=True)
    lines: list[Line] = [
        {curve.axis: f"{at:g}", "median": median, "mean": mean, "largest": largest}
        for at, median, mean, largest in points
    ]
    if name in record.main.floor.curves:
        floor = record.main.floor.curves[name]
        for line, median, largest in zip(lines, floor.median, floor.max, strict=True):
            line.update({"floor median": median, "floor largest": largest})
    return lines


def _analysis(record: Record, name: str, analyses: list[Any]) -> list[Line]:
    """One line per number, one column per seed."""
    labels = ["value" if s.seed is None else f"seed {s.seed}" for s in record.seeds]
    by_seed = {
        label: dict(_numbers("", analysis))
        for label, analysis in zip(labels, analyses, strict=True)
    }
    keys = dict.fromkeys(key for numbers in by_seed.values() for key in numbers)
    return [
        {name: key, **{label: numbers.get(key) for label, numbers in by_seed.items()}}
        for key in keys
    ]


def _numbers(key: str, content: Any) -> Iterator[tuple[str, float]]:
    """The single numbers of an analysis by their path; lists of numbers are left out."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _numbers(f"{key} {name}".strip(), value)
    elif isinstance(content, list):
        for index, value in enumerate(content):
            if isinstance(value, dict):
                yield from _numbers(f"{key} {index}", value)
    elif isinstance(content, int | float):
        yield key, float(content)


def _table(lines: list[Line]) -> str:
    cells = [{key: _cell(value) for key, value in line.items()} for line in lines]
    return tabulate(cells, headers="keys", tablefmt="simple", disable_numparse=True)


def _cell(value: object) -> str:
    if value is None:
        return "inf"
    return f"{value:.2e}" if isinstance(value, float) else str(value)
