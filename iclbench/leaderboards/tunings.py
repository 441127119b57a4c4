"""What a record's tuning says: whether a search chose its settings, and whether it saw anything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..api.record import Record
from ..api.tuning import negligible_gain


def is_tuned(record: Record) -> bool:
    """Whether a search chose the settings of the training: two different ones have a score."""
    scored = [
        (trial.get("model_args"), trial.get("recipe_args"))
        for trial in trials_of(record)
        if trial.get("score") is not None
    ]
    return any(settings != scored[0] for settings in scored)


def trials_of(record: Record) -> list[dict[str, Any]]:
    """The trials of the record's tuning; none without one."""
    trials = record.tuning.document.get("trials") if record.tuning else None
    return [t for t in trials if isinstance(t, dict)] if isinstance(trials, list) else []


def tuning_budget(record: Record) -> str | None:
    """The budget that the record's settings were searched for, which may be another than its own.

    None without a tuning, or if the search was for given steps.
    """
    budget = record.tuning.document.get("budget") if record.tuning else None
    return budget if isinstance(budget, str) else None


def tuned_at_chance(record: Record, chance: np.ndarray | None) -> bool:
    """Whether no trial of the tuning was clearly better than chance, so that noise may have chosen.

    Noise has not chosen where the search kept the recipe's own settings, its first trial, although
    another one scored better.
    `chance` has what ranks of the board's best row that ignores the examples, (1, prompts); without
    one, nothing is known. Trials have other prompts, on which chance may be better or worse.
    """
    scores = [trial["score"] for trial in trials_of(record) if _is_score(trial.get("score"))]
    if chance is None or not np.isfinite(chance).all() or not scores:
        return False
    goodness, best = record.ranking.goodness, max(map(record.ranking.goodness, scores))
    score = float(chance.mean())
    margin = max(negligible_gain(record.ranking, score), _noise(record, chance))
    if best - goodness(score) > margin:
        return False
    chosen = record.tuning.document.get("chosen") if record.tuning else None
    first = trials_of(record)[0].get("score")
    return not (chosen == 0 and _is_score(first) and goodness(first) < best)


def _noise(record: Record, chance: np.ndarray) -> float:
    """Twice the standard error of how far chance is on the tuning prompts from here."""
    trials = record.tuning.document.get("evaluation_prompts") if record.tuning else None
    sizes = [n for n in (chance.shape[1], trials) if isinstance(n, int) and n > 0]
    if chance.shape[1] < 2:
        return 0.0
    return float(2 * chance.mean(axis=0).std(ddof=1) * math.sqrt(sum(1 / n for n in sizes)))


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
