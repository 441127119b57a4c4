"""Ranked tables from records: one for each task, configuration, dtype and evaluation set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
from tabulate import tabulate

from ..api.record import Ranking, Record
from ..api.spec import canonical_json
from ..api.statistics import Statistics
from ..runs.statistics import GRADE
from ..runs.store import RecordStore, read_per_prompt, read_record
from .comparison import Difference, Resampled, difference, resample


@dataclass(frozen=True)
class Standing:
    """A record's place on its board.

    `values` are the ranked metric's, (seeds, prompts); `above` is the paired difference from the
    row above, of log10 where errors are compared by digits.
    """

    record: Record
    label: str
    rank: str
    values: np.ndarray
    resampled: Resampled
    above: Difference | None


@dataclass(frozen=True)
class Board:
    """The records of one task, comparable with each other, best first."""

    title: str
    records: tuple[Record, ...]
    rows: pd.DataFrame
    standings: tuple[Standing, ...] = ()


def leaderboard(out: str | Path = "results") -> list[Board]:
    """The boards of all records under `out`; raises RecordError for a damaged one."""
    store = RecordStore(Path(out))
    return boards([read_record(path) for path in store.paths()], store)


def boards(records: Sequence[Record], store: RecordStore) -> list[Board]:
    """One board for each set of records that are comparable."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(_comparable(record), []).append(record)
    return [_board(groups[key], store) for key in sorted(groups)]


def render(board: Board, style: str = "github") -> str:
    """The board as text, in one of tabulate's styles."""
    rows = board.rows.copy()
    number = "{:.2e}".format
    table = pd.DataFrame(
        {
            "rank": rows["rank"],
            "model": rows["model"],
            "median": rows["median"].map(number),
            "mean": rows["mean"].map(number),
            "95% interval": [
                f"{number(low)} … {number(high)}"
                for low, high in zip(rows["low"], rows["high"], strict=True)
            ],
            "digits": rows["digits"].map(lambda v: "" if pd.isna(v) else f"{v:.1f}"),
            "seeds": rows["seeds"],
            "over seeds": rows["spread"],
            "parameters": rows["parameters"],
            "origin": rows["origin"],
            "time": rows["seconds"].map(lambda v: "" if pd.isna(v) else f"{v:.1f} s"),
        }
    )
    body = tabulate(
        table.to_dict("records"),
        headers="keys",
        tablefmt=style,
        disable_numparse=True,
        colalign=(
            "right",
            "left",
            *["right"] * 3,
            "right",
            "right",
            "right",
            "right",
            "left",
            "right",
        ),
    )
    return f"{board.title}\n\n{body}"


def _comparable(record: Record) -> str:
    spec = record.spec
    return canonical_json(
        [
            spec.task,
            spec.task_version,
            record.evaluation.task_args,
            spec.dtype,
            record.evaluation.digest,
            *_graded_by(record),
        ]
    )


def _graded_by(record: Record) -> list[Any]:
    """What graded, where records are ranked by grades: grades of another grader are others."""
    if record.grader is None or not record.ranking.metric.startswith(GRADE):
        return []
    return [record.grader.name, record.spec.grader_args, record.grader.model, record.grader.prompt]


def _board(records: list[Record], store: RecordStore) -> Board:
    first = records[0]
    ranking, spec = first.ranking, first.spec
    ordered = sorted(records, key=lambda r: (_sort_value(r), r.spec.model, r.id))
    standings = _standings(ordered, store)
    rows = [_row(s.rank, s.label, s.record) for s in standings]
    bottom = first.floor.get(ranking.metric)
    if bottom is not None:
        floor = _statistics(first.floor_name, bottom, ranking)
        rows.insert(0, {**floor, "rank": "", "origin": "floor", "seeds": "", "spread": "",
                        "parameters": "", "seconds": math.nan})  # fmt: skip
    args = ", ".join(f"{k}={v}" for k, v in first.evaluation.task_args.items())
    title = (
        f"{spec.task} v{spec.task_version} ({args}) · {spec.dtype} · {ranking.metric} on "
        f"{first.evaluation.prompts} prompts, ranked by its {ranking.statistic}"
    )
    if _graded_by(first):
        title += f", graded by {_grader_name(first)}"
    return Board(title, tuple(ordered), pd.DataFrame(rows), standings)


def _standings(ordered: list[Record], store: RecordStore) -> tuple[Standing, ...]:
    values = [ranked_values(store.path(record.spec), record) for record in ordered]
    digits = ordered[0].ranking.scale == "log"
    if ordered[0].ranking.metric.startswith(GRADE):
        # What a grader failed on is left out for all.
        there = ~np.isnan(np.concatenate(values)).any(axis=0)
        values = [v[:, there] for v in values] if there.any() else values
    resampled = [resample(v, digits) for v in values]
    above = [None, *(difference(b, a) for a, b in itertools.pairwise(resampled))]
    ranks = _ranks(ordered, values, resampled)
    labels = labels_of(ordered)
    rows = zip(ordered, labels, ranks, values, resampled, above, strict=True)
    return tuple(Standing(*row) for row in rows)


def ranked_values(path: Path, record: Record) -> np.ndarray:
    """The values that rank the record, (seeds, prompts); a second axis is averaged."""
    values = read_per_prompt(path, record)[f"metric/{record.ranking.metric}"]
    return np.asarray(values.mean(axis=2) if values.ndim == 3 else values)


def _grader_name(record: Record) -> str:
    grader = record.grader
    return " ".join([grader.name, grader.model or ""]).strip() if grader else _UNSET


def _row(rank: str, label: str, record: Record) -> dict[str, Any]:
    metric = record.ranking.metric
    seconds = record.training.seconds if record.training else record.evaluation.seconds
    return {
        **_statistics(label, record.metrics[metric], record.ranking),
        "rank": rank,
        "origin": _origin(record),
        "seeds": str(len(record.seeds)) if record.training else "",
        "spread": _spread(record),
        "parameters": f"{record.parameters:,}",
        "seconds": seconds,
    }


def _statistics(label: str, found: Statistics, ranking: Ranking) -> dict[str, Any]:
    values = {name: _number(getattr(found, name)) for name in ("median", "mean", "low", "high")}
    shown = ranking.scale == "log" and values["median"] > 0
    digits = -math.log10(values["median"]) if shown else None
    return {"model": label, **values, "digits": math.nan if digits is None else digits}


def _origin(record: Record) -> str:
    diverged = sum(seed.diverged_at is not None for seed in record.seeds)
    return record.spec.origin + (f", {diverged} diverged" if diverged else "")


def _spread(record: Record) -> str:
    """The lowest and highest of the seeds' own statistics."""
    if len(record.seeds) < 2:
        return ""
    ranking = record.ranking
    each = [_number(getattr(s.metrics[ranking.metric], ranking.statistic)) for s in record.seeds]
    return f"{min(each):.1e} … {max(each):.1e}"


def _ranks(
    ordered: list[Record], values: list[np.ndarray], resampled: list[Resampled]
) -> list[str]:
    """1, 2, …; a row that can't be told from the first of the rank above shares that rank."""
    lower = ordered[0].ranking.better == "lower"
    finite = [bool(np.isfinite(v).all()) for v in values]
    ranks: list[int] = []
    for i in range(len(ordered)):
        first = ranks[-1] - 1 if ranks else i
        tied = i > 0 and not (
            (finite[first] and not finite[i])
            or _is_better(difference(resampled[first], resampled[i]), lower)
        )
        ranks.append(ranks[-1] if tied else i + 1)
    return [f"{rank}=" if ranks.count(rank) > 1 else str(rank) for rank in ranks]


def _is_better(found: Difference, lower: bool) -> bool:
    """Whether the first of two rows is better beyond doubt, in the direction of the ranking."""
    return found.first_is_lower if lower else found.first_is_higher


def labels_of(records: list[Record]) -> list[str]:
    """Each record's model, with what sets it apart from others of that model."""
    facts = [_facts(record) for record in records]
    by_model: dict[str, list[dict[str, Any]]] = {}
    by_formula: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for record, own in zip(records, facts, strict=True):
        by_model.setdefault(record.spec.model, []).append(own)
        by_formula.setdefault(_formula(record), []).append(own)
    of_model = {key: _differing(same) for key, same in by_model.items()}
    of_formula = {key: _differing(kin) for key, kin in by_formula.items()}
    labels = []
    for record, own in zip(records, facts, strict=True):
        # What a record has not at all, as a solver has no recipe, sets it apart by its origin.
        names = {n for n in of_model[record.spec.model] if not n.startswith("model_args.")}
        names |= {n for n in of_formula[_formula(record)] if n.startswith("model_args.")}
        shown = [f"{n.split('.')[-1]}={own[n]}" for n in sorted(names)
                 if n in own and own[n] != _UNSET]  # fmt: skip
        labels.append(" ".join([record.spec.model, *shown]))
    return labels


def _differing(facts: list[dict[str, Any]]) -> set[str]:
    """The names whose values are not the same wherever they are.

    A model's argument that was added later is absent at its default.
    """
    values: dict[str, list[str]] = {}
    for fact in facts:
        for name, value in fact.items():
            values.setdefault(name, []).append(str(value))
    return {
        name
        for name, found in values.items()
        if len(set(found)) > 1 or (name.startswith("model_args.") and len(found) < len(facts))
    }


def _formula(record: Record) -> tuple[str, ...]:
    """Within one, the model's arguments set rows apart; a construction's own follow from it."""
    spec = record.spec
    args = canonical_json(spec.weights_args) if spec.origin == "constructed" else ""
    return spec.model, spec.origin, str(spec.weights or ""), args


#: What is said by its absence, and by the column of origins.
_UNSET = "none"


def _facts(record: Record) -> dict[str, Any]:
    spec = record.spec
    facts: dict[str, Any] = {}
    for group in ("model_args", "weights_args", "recipe_args"):
        facts.update({f"{group}.{k}": v for k, v in getattr(spec, group).items()})
    if spec.origin == "trained":
        facts.update({"recipe": spec.recipe, "seeds": spec.seeds})
        for name, value in spec.task_args.items():
            if name not in record.evaluation.task_args:
                facts[f"task_args.{name}"] = value
    for name in ("weights", "init", "freeze", "perturb"):
        value = getattr(spec, name)
        # A checkpoint by its name: where it was is of no interest elsewhere.
        facts[name] = PurePath(value).name if isinstance(value, str) else value or _UNSET
    facts["grader"] = _grader_name(record)
    for derived in ("recipe_args.model_args", "recipe_args.task_args", "recipe_args.chunk"):
        facts.pop(derived, None)
    return facts


def _sort_value(record: Record) -> float:
    ranking = record.ranking
    value = getattr(record.metrics[ranking.metric], ranking.statistic)
    if value is None:
        return math.inf
    return float(value) if ranking.better == "lower" else -float(value)


def _number(value: float | None) -> float:
    return np.inf if value is None else value
