"""Export: all rows of all boards as one table, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..api.spec import canonical_json
from .escaping import csv_cell
from .row import PROFILE, Row
from .sizes import known_parameters
from .tunings import trials_of, tuning_budget

if TYPE_CHECKING:
    import pandas as pd

_UNKNOWN = (None,) * len(PROFILE)


def export_table(rows: Iterable[Row]) -> pd.DataFrame:
    """One line per row of any boards, in their order."""
    # Imported here: it takes half a second, and a run prints its board without it.
    import pandas as pd

    table = pd.DataFrame([_line(row) for row in rows])
    if table.empty:
        return table
    # Nullable types keep integers and booleans as such where some rows have none.
    integers = ("rank_first", "rank_last", "parameters", "steps", "batch", "tuning_trials")
    truths = ("at_floor", "held_out_differs", "tuned", "tuned_at_chance")
    return table.astype(dict.fromkeys(integers, "Int64") | dict.fromkeys(truths, "boolean"))


def _line(row: Row) -> dict[str, Any]:
    record, rank = row.record, row.rank
    spec, training = record.spec, record.training
    return {
        "id": record.id,
        "task": spec.task,
        "title": record.main.title,
        "task_version": spec.task_version,
        "task_args": canonical_json(record.main.task_args),
        "dtype": spec.dtype,
        "prompts": record.main.prompts,
        "evaluation_digest": record.main.digest,
        "row": row.label,
        "model": spec.model,
        "model_args": canonical_json(spec.model_args),
        "origin": row.origin,
        "weights": row.construction,
        "init": spec.init,
        "track": record.track,
        "rank_first": rank.first if rank else None,
        "rank_last": rank.last if rank else None,
        "unranked": row.unranked or None,
        **_numbers(row),
        "seeds": row.seeds,
        "diverged": row.diverged,
        "parameters": known_parameters(record),
        "recipe": spec.recipe or None,
        "steps": row.steps,
        "batch": row.batch,
        "tuned": row.is_tuned if row.is_trained else None,
        "tuned_at_chance": row.tuned_at_chance if row.is_tuned else None,
        "tuning_trials": len(trials_of(record)) or None,
        "tuning_budget": tuning_budget(record),
        "training_seconds": training.seconds if training else None,
        "evaluation_seconds": record.main.seconds,
        "device": record.environment.device,
        "plugins": ", ".join(f"{p.name} ({p.distribution} {p.version})" for p in record.plugins),
        "proof": row.proof or None,
        "created": record.created,
        "command": record.command,
        "record": row.file,
        "digest": record.digest,
    }


def _numbers(row: Row) -> dict[str, Any]:
    """What was measured: the statistic that ranks, and the metric in its own unit."""
    ranking, statistics, above = row.record.ranking, row.statistics, row.above
    scores = [score for score in row.seed_scores if score is not None]
    numbers = statistics.model_dump(exclude={"n", "digits", "low", "high", "interval", "reliable"})
    mean = row.mean_bounds
    return {
        "metric": ranking.metric,
        "better": ranking.better,
        "statistic": ranking.statistic,
        "score_better": ranking.better_score,
        "score": row.score,
        "score_low": row.bounds.low,
        "score_high": row.bounds.high,
        "score_interval": row.bounds.kind,
        "score_lowest_seed": min(scores, default=None),
        "score_highest_seed": max(scores, default=None),
        **numbers,
        "mean_low": mean.low,
        "mean_high": mean.high,
        "mean_interval": mean.kind,
        "mean_reliable": mean.reliable,
        "floor_kind": row.record.main.floor.kind,
        "floor_score": row.floor_score,
        "at_floor": row.at_floor if row.has_digits else None,
        "chance": row.chance or None,
        "accuracy": row.accuracy,
        "held_out_score": row.held_out_score,
        "held_out_differs": row.held_out_differs if row.held_out else None,
        **{f"solved_to_{k}": v for k, v in zip(PROFILE, row.profile or _UNKNOWN, strict=True)},
        # Rounded: differences are computed now and may vary in the last bits between machines.
        "above_difference": _rounded(above.mean if above else None),
        "above_low": _rounded(above.low if above else None),
        "above_high": _rounded(above.high if above else None),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def as_csv(table: pd.DataFrame) -> bytes:
    """The table as CSV, numbers at full precision."""
    return table.map(csv_cell).to_csv(index=False, lineterminator="\n").encode()


def as_parquet(table: pd.DataFrame) -> bytes:
    """The table as Parquet."""
    data = table.to_parquet(index=False, engine="pyarrow")
    if not isinstance(data, bytes):
        raise TypeError("pandas wrote no Parquet")
    return data
