"""Comparing every prompt's recorded value with the one measured again.

A number in a record can be recomputed from the values, so values that agree prove the numbers.
Rounding differs between machines, so an error near the floor may differ although nothing is wrong.
It is compared in three ways: every prompt alone, the mean digits of all prompts, which an
error divided by three would move, and the order of the prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..api.digits import ErrorKind
from .comparison import (
    ARITHMETIC,
    MEAN_DIGITS,
    NEAR_FLOOR,
    NEGLIGIBLE,
    RELATIVE,
    Check,
    Tolerance,
    absolute,
    same,
)

#: Near the floor a prompt's error may move by this many times the attainable error or itself.
FACTOR = 10.0
#: The end of the name of the check of the mean digits over all prompts.
MEAN_DIGITS_NAME = "mean digits"
#: Where a floor is not known, rounding moves an error by at most this many ε of the targets.
ROUNDING = 256.0
#: The part of a metric other than an error that may differ: other machines break ties otherwise.
STRAY = 1e-3
#: The part of errors that may move further than rounding did in a few draws, which are too few.
STRAY_ROUNDED = 1e-2


@dataclass(frozen=True)
class Arithmetic:
    """What rounding does to a task's errors: the dtype, the targets' size, and the floor."""

    dtype: str
    errors: Mapping[str, ErrorKind]  # metric → squared or absolute
    size: float  # root mean square of the targets
    floor: Mapping[str, np.ndarray]  # metric → its value for every prompt, (prompts[, axis])

    @property
    def eps(self) -> float:
        """The dtype's machine epsilon."""
        return float(np.finfo(self.dtype).eps)

    @property
    def least(self) -> float:
        """Half a unit in the last place of a target."""
        return self.eps * self.size / 4

    def attainable(self, metric: str) -> np.ndarray | None:
        """The floor's absolute errors, NaN on the positions of the axis where it isn't rounding."""
        if metric not in self.floor or metric not in self.errors or not self.floor[metric].size:
            return None
        errors = np.maximum(absolute(self.floor[metric], self.errors[metric]), self.least)
        medians = np.median(errors, axis=0, keepdims=True)
        is_rounding = medians <= np.sqrt(ARITHMETIC) * self.eps * max(self.size, 1.0)
        return np.asarray(np.where(is_rounding, errors, np.nan))

    def tolerance(self) -> Tolerance:
        """The tolerance of statistics."""
        known = {name: self.attainable(name) for name in self.errors}
        medians = {n: np.median(a, axis=0) for n, a in known.items() if a is not None}
        rounding = {n: m for n, m in medians.items() if not np.isnan(m).all()}
        return Tolerance(self.dtype, self.errors, rounding)


def compare_values(
    label: str,
    recorded: Mapping[str, np.ndarray],
    measured: Mapping[str, np.ndarray],
    arithmetic: Arithmetic,
    spread: Mapping[str, np.ndarray] | None = None,
) -> Iterator[Check]:
    """Checks of values (seeds, prompts[, axis]) of every metric.

    `spread` is how far rounding moves each value, where that was measured.
    """
    spread = spread or {}
    if set(recorded) != set(measured):
        yield same(f"{label}metrics", sorted(recorded), sorted(measured))
        return
    for metric, before in recorded.items():
        now, name = measured[metric], f"{label}{metric}"
        shapes = same(f"{name} shape", list(before.shape), list(now.shape))
        if not shapes.holds:
            yield shapes
        elif metric in arithmetic.errors:
            moves = spread.get(metric)
            yield from _compare_errors(name, before, now, metric, arithmetic, spread=moves)
        else:
            agreeing = _agreeing(before, now, arithmetic, spread.get(metric, 0.0))
            yield Check(
                f"{name} of every prompt, values that agree",
                now.size,
                agreeing,
                agreeing >= now.size - _strays(now.size),
            )


def compare_answers(
    name: str,
    recorded: np.ndarray,
    measured: np.ndarray | None,
    arithmetic: Arithmetic,
    spread: np.ndarray | float = 0.0,
) -> Check:
    """A check of the models' answers to the first prompts, (seeds, prompts, numbers)."""
    now = np.zeros(0) if measured is None else np.where(np.isfinite(measured), measured, np.nan)
    if recorded.shape != now.shape:
        return same(f"{name}, shape", list(recorded.shape), list(now.shape))
    # Seed by seed: one that answers large numbers gives the others no slack.
    moves = np.broadcast_to(spread, now.shape)
    agreeing = sum(map(_agreeing, recorded, now, [arithmetic] * len(now), moves))
    return Check(f"{name}, values that agree", now.size, agreeing, agreeing == now.size)


def _strays(count: int) -> int:
    """How many of so many values may differ: a part of them, and two of any number over 100."""
    return max(int(STRAY * count), 2 if count > 100 else 0)


def _agreeing(
    before: np.ndarray, now: np.ndarray, arithmetic: Arithmetic, spread: np.ndarray | float
) -> int:
    """How many values agree relatively, or up to rounding of the metric's own size."""
    finite = now[np.isfinite(now)]
    size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    slack = ROUNDING * arithmetic.eps * size + spread + NEGLIGIBLE
    return int(_near(before, now, RELATIVE[arithmetic.dtype], slack).sum())


def _compare_errors(
    name: str,
    before: np.ndarray,
    now: np.ndarray,
    metric: str,
    arithmetic: Arithmetic,
    *,
    spread: np.ndarray | None,
) -> Iterator[Check]:
    kind, relative = arithmetic.errors[metric], RELATIVE[arithmetic.dtype]
    attainable = _for_every_prompt(arithmetic.attainable(metric), now)
    a, b = absolute(before, kind), absolute(now, kind)
    slack = np.where(
        np.isnan(attainable), ROUNDING * arithmetic.eps * arithmetic.size, FACTOR * attainable
    )
    with np.errstate(invalid="ignore"):
        is_rounding = np.maximum(a, b) <= NEAR_FLOOR * attainable
        within = np.maximum(a, b) <= FACTOR * np.maximum(np.minimum(a, b), attainable)
    agreeing = _near(a, b, relative, slack) | (is_rounding & within)
    least_agreeing = now.size
    if spread is not None:
        agreeing |= _near(before, now, relative, spread)
        least_agreeing = now.size - max(int(STRAY_ROUNDED * now.size), _strays(now.size))
    count = int(agreeing.sum())
    yield Check(
        f"{name} of every prompt, values that agree", now.size, count, count >= least_agreeing
    )
    # No true error is below the least that arithmetic gives, but a forged one would be.
    least = 1e-3 * arithmetic.least or np.finfo(np.float64).tiny
    recorded, measured = (float(-np.log10(np.clip(_finite(x), least, None)).mean()) for x in (a, b))
    holds = abs(recorded - measured) <= MEAN_DIGITS
    yield Check(f"{name} {MEAN_DIGITS_NAME}", recorded, measured, holds)
    yield _order(name, before, now, relative, 0.0 if spread is None else spread)


def _for_every_prompt(attainable: np.ndarray | None, now: np.ndarray) -> np.ndarray:
    """Attainable errors as the values' shape; prompts beyond those of the floor get the median."""
    if attainable is None or attainable.shape[1:] not in {(), now.shape[2:]}:
        return np.full(now.shape, np.nan)
    if attainable.ndim < now.ndim - 1:
        attainable = attainable[:, None]
    medians = np.median(attainable, axis=0, keepdims=True)
    missing = now.shape[1] - len(attainable)
    repeated = np.repeat(medians, max(missing, 0), axis=0)
    padded = np.concatenate([attainable[: now.shape[1]], repeated])
    return np.broadcast_to(padded, now.shape)


def _order(
    name: str, before: np.ndarray, now: np.ndarray, relative: float, spread: np.ndarray | float
) -> Check:
    """Whether the values belong to their prompts: rounding changes values, not their places."""
    in_place = _near(before, now, relative, spread).mean()
    sorted_values = _near(np.sort(before, axis=1), np.sort(now, axis=1), relative, 0.0).mean()
    moved = sorted_values > 0.9 and in_place < 0.9 * sorted_values
    return Check(f"{name} in order", float(in_place), float(sorted_values), not moved)


def _near(a: np.ndarray, b: np.ndarray, relative: float, slack: np.ndarray | float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= relative * np.maximum(np.abs(a), np.abs(b)) + slack
    return np.asarray(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def _finite(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.nan_to_num(values, nan=1e300, posinf=1e300))
