"""Export: all rows of all boards as one table, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from ..api.errors import UsageError
from ..api.spec import canonical_json
from . import formats
from .board import Board
from .escaping import csv_cell
from .row import PROFILE, Row, has_digits


def export_table(boards: Iterable[Board]) -> pd.DataFrame:
    """One line per row, in the order of the boards."""
    table = pd.DataFrame([_line(row) for board in boards for row in board.rows])
    # Nullable types keep integers and booleans as such where some rows have none.
    return table.astype({"steps": "Int64", "batch": "Int64", "at_floor": "boolean"})


def _line(row: Row) -> dict[str, Any]:
    record = row.record
    spec, ranking, statistics = record.spec, record.ranking, row.statistics
    scores = [score for score in row.seed_scores if score is not None]
    solved = row.profile or [None] * len(PROFILE)
    return {
        "id": record.id,
        "task": spec.task,
        "task_version": spec.task_version,
        "task_args": canonical_json(record.main.task_args),
        "dtype": spec.dtype,
        "prompts": record.main.prompts,
        "evaluation_digest": record.main.digest,
        "rank": formats.rank(row),
        "row": row.label,
        "model": spec.model,
        "model_args": canonical_json(spec.model_args),
        "origin": row.origin,
        "weights": row.construction,
        "metric": ranking.metric,
        "better": ranking.better,
        "ranked_by": ranking.statistic,
        **statistics.model_dump(exclude={"n", "digits"}),
        "digits": row.digits,
        "floor": row.floor_score,
        "floor_digits": row.floor_digits,
        "at_floor": row.at_floor if has_digits(ranking) else None,
        **{f"solved_to_{k}": value for k, value in zip(PROFILE, solved, strict=True)},
        # Rounded: differences are computed now and may vary in the last bits between machines.
        "above_difference": _rounded(row.above.mean if row.above else None),
        "above_low": _rounded(row.above.low if row.above else None),
        "above_high": _rounded(row.above.high if row.above else None),
        "seeds": row.seeds,
        "seeds_lowest": min(scores, default=None),
        "seeds_highest": max(scores, default=None),
        "diverged": row.diverged,
        "parameters": row.parameters,
        "recipe": spec.recipe or None,
        "steps": row.steps,
        "batch": row.batch,
        "training_seconds": row.training_seconds,
        "evaluation_seconds": row.evaluation_seconds,
        "device": row.device,
        "plugins": ", ".join(f"{p.name} ({p.distribution} {p.version})" for p in record.plugins),
        "created": record.created,
        "command": record.command,
        "record": row.file,
        "digest": record.digest,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def as_csv(table: pd.DataFrame) -> bytes:
    """The table as CSV, numbers at full precision."""
    return table.map(csv_cell).to_csv(index=False, lineterminator="\n").encode()


def as_parquet(table: pd.DataFrame) -> bytes:
    """The table as Parquet; raises UsageError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'iclbench[parquet]', or skip it with --no-parquet"
        ) from None
    data = table.to_parquet(index=False, engine="pyarrow")
    if not isinstance(data, bytes):
        raise TypeError("pandas wrote no Parquet")
    return data
