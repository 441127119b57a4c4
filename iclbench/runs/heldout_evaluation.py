"""Evaluating trained rows on held-out prompts, and checking such evaluations again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from ..api.digits import digits
from ..api.record import Record
from ..api.spec import digest_of
from ..api.statistics import Statistics, finite
from ..devices import environment, find_device
from ..precision import DTYPES, full_precision
from .comparison import RELATIVE, Check, Tolerance, compare_statistics, same
from .exclusive import exclusive
from .facts import recompute
from .heldout import (
    NEAR_ATTAINABLE,
    HeldOut,
    HeldOutDifference,
    held_out_seed,
    read_held_out,
)
from .measure import Measured, measure
from .models import given_models
from .prompt_values import floor_values, prompt_values
from .report import date_now
from .statistics import by_prompt, summarize
from .values import Arithmetic

#: How far a difference computed again may move, as a share of its interval.
SHARE = 0.05
#: How far p-values may then lie apart, in orders of magnitude: near the threshold, and as a share
#: of −log₁₀ p for smaller ones, which move more. Those below the last are equally small.
NEAR_P, NEAR_LOGARITHM, SMALLEST_P = 0.35, 0.1, 1e-8


@exclusive()
def evaluate_held_out(path: Path, record: Record, salt: str, device: str = "auto") -> HeldOut:
    """Evaluate the weights of the trained record in `path` on the prompts that a salt gives."""
    held_out, _ = _evaluate(path, record, salt, device)
    content = held_out.model_dump(mode="json", exclude={"digest"})
    return held_out.model_copy(update={"digest": digest_of(content)})


def _evaluate(path: Path, record: Record, salt: str, device: str) -> tuple[HeldOut, Tolerance]:
    """The evaluation, and how far its statistics may differ on another machine."""
    seed, chosen = held_out_seed(record, salt), find_device(device)
    plan = recompute(path, record).evaluation_plan
    spec = plan.spec.model_copy(update={"eval_seed": seed, "grader": None})
    plan = replace(plan, spec=spec, metrics=(), grader=None)
    with full_precision(DTYPES[spec.dtype]):
        measured = measure(plan, given_models(plan), chosen)
    arithmetic = Arithmetic(
        spec.dtype, plan.task.errors, measured.target_size, measured.floor_values
    )
    kind = plan.kinds.get(record.ranking.metric)
    measured_again = summarize(measured.values[record.ranking.metric], kind)
    held_out = HeldOut(
        **_document(path, record, measured, measured_again),
        salt=salt,
        seed=seed,
        environment=environment(chosen),
        created=date_now(),
    )
    return held_out, arithmetic.tolerance()


def _document(
    path: Path, record: Record, measured: Measured, statistics: Statistics
) -> dict[str, Any]:
    """The fields of the document that follow from what was measured."""
    assert record.weights_file is not None
    name = record.ranking.metric
    known = record.metrics[name].digits
    error = known.error if known is not None else None
    scored = [by_prompt(measured.values[name]), prompt_values(path, record, name)]
    if record.ranking.statistic == "mean digits" and error is not None:
        scored = [digits(values, error) for values in scored]
        if record.main.floor.kind == "exact":
            again = by_prompt(measured.floor_values[name][None])[0]
            floors = [again, floor_values(path, record, name)]
            scored = _up_to_attainable(scored, [digits(values, error) for values in floors])
    means = [values.mean(axis=0) for values in scored]
    return {
        "record": record.id,
        "weights": record.weights_file.sha256,
        "prompts": record.spec.eval_prompts,
        "draws": measured.digest,
        "metric": name,
        "statistics": statistics,
        "difference": _difference(means[0], means[1], record.ranking.better_score),
    }


def _up_to_attainable(
    scored: Sequence[np.ndarray], attainable: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Digits of two sets of prompts, in which those near either set's attainable ones are equal.

    The attainable error is one of numbers of the targets' size, which differs between sets of
    prompts and moves all values at the floor at once.
    """
    most = min(float(np.median(values)) for values in attainable) - NEAR_ATTAINABLE
    return [np.minimum(values, most) for values in scored]


def _difference(
    now: np.ndarray, before: np.ndarray, better: Literal["lower", "higher"]
) -> HeldOutDifference:
    """The difference of two samples of prompts: of their means and of their ranks."""
    ranks = _by_ranks(now, before, better)
    # Squares of squares neither over- nor underflow.
    size = max(float(np.abs(v).max()) for v in (now, before)) or 1.0
    scaled = [v / size for v in (now, before)] if np.isfinite(size) else [now, before]
    mean = float(scaled[0].mean() - scaled[1].mean())
    parts = [float(v.var(ddof=1)) / len(v) if len(v) > 1 else np.inf for v in scaled]
    variance = sum(parts)
    if not np.isfinite([mean, variance]).all():
        return HeldOutDifference(mean=finite(size * mean), low=None, high=None, p=None, **ranks)
    if variance == 0:
        mean *= size
        return HeldOutDifference(mean=mean, low=mean, high=mean, p=float(mean == 0), **ranks)
    squares = sum(p**2 / (len(v) - 1) for p, v in zip(parts, scaled, strict=True))
    freedom, spread = variance**2 / squares, variance**0.5
    half = float(stdtrit(freedom, 0.975)) * spread
    p = 2 * float(stdtr(freedom, -abs(mean) / spread))
    low, high = size * (mean - half), size * (mean + half)
    return HeldOutDifference(mean=size * mean, low=low, high=high, p=p, **ranks)


def _by_ranks(
    now: np.ndarray, before: np.ndarray, better: Literal["lower", "higher"]
) -> dict[str, float]:
    """The Mann–Whitney test (1947), and the share of pairs in which `now` is better.

    Welch's test sees nothing where the variance is that of a few bad draws, and those of a row
    that knows the board's prompts are all on the held-out side. NaN is worse than any number.
    """
    from scipy.stats import mannwhitneyu

    sign = 1.0 if better == "higher" else -1.0
    a, b = (np.where(np.isnan(v), -np.inf, sign * v) for v in (now, before))
    test = mannwhitneyu(a, b, method="asymptotic")
    return {
        # Of values that are all equal, the test has no p-value.
        "rank_p": float(np.nan_to_num(test.pvalue, nan=1.0)),
        "better": float(test.statistic) / (len(now) * len(before)),
    }


def compare_held_out(path: Path, record: Record, device: str) -> Iterator[Check]:
    """A check for every fact of the held-out evaluation beside a record; none if there is none."""
    held_out = read_held_out(path, record)
    if held_out is None:
        return
    now, tolerance = _evaluate(path, record, held_out.salt, device)
    yield same("held out: prompts", held_out.prompts, now.prompts)
    yield same("held out: draws", held_out.draws, now.draws)
    name = held_out.metric
    yield from compare_statistics(
        "held out: ", {name: held_out.statistics}, {name: now.statistics}, tolerance
    )
    yield from _compare_differences(held_out, now, RELATIVE[record.spec.dtype])


def _compare_differences(held_out: HeldOut, now: HeldOut, relative: float) -> Iterator[Check]:
    """Differences are of two sums with rounding each, so they are compared on their scale."""
    a, b = held_out.difference, now.difference
    width = 0.0 if b.low is None or b.high is None else b.high - b.low
    size = abs(now.statistics.digits.mean or 0.0) if now.statistics.digits else 0.0
    slack = SHARE * width + relative * max(size, abs(now.statistics.mean or 0.0))
    for field in ("mean", "low", "high"):
        recorded, computed = getattr(a, field), getattr(b, field)
        known = recorded is not None and computed is not None
        holds = abs(recorded - computed) <= slack if known else recorded is computed
        yield Check(f"held out: difference {field}", recorded, computed, holds)
    yield Check("held out: p", a.p, b.p, _are_near(a.p, b.p))
    yield Check("held out: rank p", a.rank_p, b.rank_p, _are_near(a.rank_p, b.rank_p))
    holds = abs(a.better - b.better) <= SHARE * _interval_of_share(now.statistics.n)
    yield Check("held out: better", a.better, b.better, holds)


def _interval_of_share(prompts: int) -> float:
    """The width of the 95% interval of `better`, of two samples of so many prompts that are alike.

    Its variance is that of Mann and Whitney's statistic, (m + n + 1) / 12mn (1947).
    """
    return 2 * 1.96 * float(np.sqrt((2 * prompts + 1) / (12 * prompts**2)))


def _are_near(recorded: float | None, computed: float | None) -> bool:
    """Whether two p-values are the same but for rounding of the values, or both unknown.

    A rank may depend on them, so they may differ only as much as the slack of the mean moves them.
    """
    if recorded is None or computed is None:
        return recorded is computed
    a, b = (float(np.log10(max(p, SMALLEST_P))) for p in (recorded, computed))
    return abs(a - b) <= max(NEAR_P, NEAR_LOGARITHM * abs(b))
