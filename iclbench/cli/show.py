"""`iclbench show`: one record's numbers and curves as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from tabulate import tabulate

from .common import record_paths

if TYPE_CHECKING:
    from ..api.record import Record

_STATISTICS = ("median", "mean", "low", "high", "q05", "q95")


def show(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of them.")],
) -> None:
    """Show what a record holds: metrics, the floor, curves, the single numbers of analyses."""
    from ..runs.store import read_record

    for path in record_paths(records):
        typer.echo(_page(read_record(path)))


def _page(record: Record) -> str:
    spec = record.spec
    where = f"{spec.model} on {spec.task} v{spec.task_version}"
    about = f"{where} · {spec.origin} · {spec.dtype} · {record.evaluation.prompts} prompts"
    rows = [_row(name, found) for name, found in record.metrics.items()]
    rows += [_row(f"floor {name}", found) for name, found in record.floor.items()]
    parts = [about, record.command, *_grading(record), _table(rows)]
    for name, curve in record.curves.items():
        points = zip(curve.values, curve.median, curve.mean, curve.max, strict=True)
        found: list[dict[str, object]] = [
            {curve.axis: f"{at:g}", "median": median, "mean": mean, "largest": largest}
            for at, median, mean, largest in points
        ]
        if name in record.floor_curves:
            floor = record.floor_curves[name]
            for row, median, largest in zip(found, floor.median, floor.max, strict=True):
                row.update({"floor median": median, "floor largest": largest})
        parts.append(f"{name} by {curve.axis}\n\n{_table(found)}")
    for name, each in record.analyses.items():
        labels = ["value" if s.seed is None else f"seed {s.seed}" for s in record.seeds]
        columns = dict(zip(labels, (dict(_numbers("", one)) for one in each), strict=True))
        found = [
            {name: place, **{label: own.get(place) for label, own in columns.items()}}
            for place in dict.fromkeys(place for own in columns.values() for place in own)
        ]
        if found:
            parts.append(_table(found))
    return "\n\n".join(parts) + "\n"


def _grading(record: Record) -> list[str]:
    """What graded, how much of it failed and what it cost."""
    found = record.grader
    if found is None:
        return []
    facts = [f"graded by {found.name}"]
    facts += [found.model] if found.model else []
    facts += [f"prompt {found.prompt[:8]}"] if found.prompt else []
    why = ", ".join(f"{n} × {reason}" for reason, n in found.reasons.items())
    failed = f"{found.failures} of {found.completions} endings failed"
    facts.append(f"{failed} ({why})" if why else failed)
    if found.cost is not None:
        usd = "unknown cost" if found.cost.usd is None else f"{found.cost.usd:.4f} USD"
        facts.append(f"{found.cost.requests} answers, {usd}")
    return [" · ".join(facts)]


def _numbers(place: str, content: Any) -> Iterator[tuple[str, float]]:
    """The single numbers of an analysis by their place; lists of numbers are left out."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(f"{place} {key}".strip(), value)
    elif isinstance(content, list):
        for index, value in enumerate(content):
            if isinstance(value, dict):
                yield from _numbers(f"{place} {index}", value)
    elif isinstance(content, int | float):
        yield place, float(content)


def _row(name: str, found: object) -> dict[str, object]:
    return {"metric": name, **{s: getattr(found, s) for s in _STATISTICS}}


def _table(rows: list[dict[str, object]]) -> str:
    shown = [{key: _cell(value) for key, value in row.items()} for row in rows]
    return tabulate(shown, headers="keys", tablefmt="github", disable_numparse=True)


def _cell(value: object) -> str:
    if value is None:
        return "inf"
    return f"{value:.2e}" if isinstance(value, float) else str(value)
