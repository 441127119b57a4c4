"""All rows of all boards as one flat table, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from ..api.errors import UsageError
from ..api.spec import canonical_json
from ..runs.store import RecordStore
from .precision import PROFILE, digits, floor_digits, has_digits, is_at_floor, profile
from .tables import Board, Standing


def flat(boards: Iterable[Board], store: RecordStore) -> pd.DataFrame:
    """One line a record, in the order of the boards."""
    rows = pd.DataFrame([_line(s, store) for board in boards for s in board.standings])
    # Whole numbers stay whole where some rows have none.
    return rows.astype({"steps": "Int64", "batch": "Int64", "at_floor": "boolean"})


def _line(standing: Standing, store: RecordStore) -> dict[str, Any]:
    record = standing.record
    spec, ranking, training = record.spec, record.ranking, record.training
    found = record.metrics[ranking.metric]
    floor = record.floor.get(ranking.metric)
    each = [getattr(s.metrics[ranking.metric], ranking.statistic) for s in record.seeds]
    known = [v for v in each if v is not None]
    above = standing.above
    solved = profile(standing.values) if has_digits(record) else [None] * len(PROFILE)
    return {
        "id": record.id,
        "task": spec.task,
        "task_version": spec.task_version,
        "task_args": canonical_json(record.evaluation.task_args),
        "dtype": spec.dtype,
        "prompts": record.evaluation.prompts,
        "evaluation_digest": record.evaluation.digest,
        "rank": standing.rank,
        "row": standing.label,
        "model": spec.model,
        "model_args": canonical_json(spec.model_args),
        "origin": spec.origin,
        "weights": spec.weights if spec.origin == "constructed" else None,
        "metric": ranking.metric,
        "better": ranking.better,
        "ranked_by": ranking.statistic,
        **{name: getattr(found, name) for name in type(found).model_fields if name != "n"},
        "digits": digits(record),
        "floor": getattr(floor, ranking.statistic) if floor else None,
        "floor_digits": floor_digits(record),
        "at_floor": is_at_floor(record) if has_digits(record) else None,
        **{f"solved_to_{k}": value for k, value in zip(PROFILE, solved, strict=True)},
        # Rounded, for what is computed now may differ in the last bits on another machine.
        "above_difference": _rounded(above.mean if above else None),
        "above_low": _rounded(above.low if above else None),
        "above_high": _rounded(above.high if above else None),
        "seeds": len(spec.seeds),
        "seeds_lowest": min(known, default=None),
        "seeds_highest": max(known, default=None),
        "diverged": sum(seed.diverged_at is not None for seed in record.seeds),
        "parameters": record.parameters,
        "recipe": spec.recipe or None,
        "steps": training.steps if training else None,
        "batch": training.batch if training else None,
        "training_seconds": training.seconds if training else None,
        "evaluation_seconds": record.evaluation.seconds,
        "device": record.environment.device,
        "plugins": ", ".join(f"{p.name} ({p.distribution} {p.version})" for p in record.plugins),
        "created": record.created,
        "command": record.command,
        "record": store.path(spec).relative_to(store.folder).as_posix(),
        "digest": record.digest,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def as_csv(rows: pd.DataFrame) -> bytes:
    """The table as CSV, numbers at full precision."""
    return rows.to_csv(index=False, lineterminator="\n").encode()


def as_parquet(rows: pd.DataFrame) -> bytes:
    """The table as Parquet; raises UsageError where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'iclbench[parquet]', or leave it out: --no-parquet"
        ) from None
    found = rows.to_parquet(index=False, engine="pyarrow")
    if not isinstance(found, bytes):
        raise TypeError("pandas wrote no Parquet")
    return found
