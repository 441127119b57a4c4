"""How numbers and facts are written, alike in every table and on every page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import PurePath

from ..api.ranking import Ranking
from ..api.record import Record
from ..console import counted
from .bounds import ONE_SEED, RANGE, UNRELIABLE, Bounds, bounds_mark, bounds_of
from .paired import Difference
from .representative import is_one_training
from .row import Row
from .sizes import known_parameters

#: The marks of the origins of weights.
MARKS = {"trained": "●", "constructed": "◆", "solver": "▲", "loaded": "■", "asked": "◇"}
#: The marks of a trained row whose settings no search chose, and of one whose search saw nothing.
UNTUNED, TUNED_AT_CHANCE = "○", "◐"

LEGEND = " · ".join(
    ["● trained", f"{TUNED_AT_CHANCE} trained, tuned at chance", f"{UNTUNED} trained, not tuned"]
    + [f"{mark} {name}" for name, mark in MARKS.items() if name != "trained"]
)

BOUNDS_LEGEND = (
    f"{ONE_SEED} one seed: the interval holds for that seed only · {RANGE} range over seeds: no "
    f"reliable 95% interval · {UNRELIABLE} unreliable: few values decide"
)

DIGITS = "Digits are −log₁₀ of the absolute error: at most about 7 in float32, 16 in float64."
#: The same beside a metric that may be a squared error.
DIGITS_OF_ERROR = (
    "Digits are −log₁₀ of an answer's error, or half of −log₁₀ of a squared error: at most about 7 "
    "in float32, 16 in float64."
)

#: The most characters of a checkpoint's name.
MOST_NAME = 40

#: The marks of what a row says of chance, see `Row.chance`.
CHANCE_MARKS = {"at chance": "≈", "perhaps at chance": "≈?", "worse than chance": "▽"}
#: The mark of a row that used much more or less than its budget; the task's page says how much.
OFF_BUDGET = "±"

#: A row that used so much more or less of its track's budget says so.
NEAR_BUDGET = 0.15

#: What stands for a number that is not finite.
NOT_FINITE = "not finite"


def number(value: float | None, scale: str = "log") -> str:
    """An error in scientific notation, or on a linear scale a metric with four figures."""
    if value is None or not math.isfinite(value):
        return NOT_FINITE
    # With the zeros at its end, so that the numbers of a column have the same decimals.
    return f"{value:.2e}" if scale == "log" else f"{value:#.4g}".rstrip(".")


def short(value: float, figures: int = 3) -> str:
    """At most so many figures, and an exponent without a leading 0: 9.63, 1.7e-5, 2.8e12."""
    return re.sub(r"e(?:\+|(-))0*", r"e\1", f"{value:.{figures}g}")


def linear(value: float | None) -> str:
    """A metric with four figures."""
    return number(value, "linear")


def digits(value: float | None) -> str:
    """Digits with two decimals."""
    return NOT_FINITE if value is None or not math.isfinite(value) else fixed(value, 2)


def fixed(value: float, places: int, flags: str = "") -> str:
    """A number with so many decimals, and Python's flags of formats, such as `+`."""
    return f"{round(value, places) + 0.0:{flags}.{places}f}"  # adding 0 turns −0 into 0


def level(value: float | None, in_digits: bool) -> str:
    """Digits, or a metric."""
    return digits(value) if in_digits else linear(value)


def score(value: float | None, ranking: Ranking) -> str:
    """What ranks: mean digits, or the mean of the metric."""
    return level(value, ranking.has_digits)


def score_name(ranking: Ranking) -> str:
    """The heading of what ranks: mean digits, or the mean of the metric."""
    return "digits" if ranking.has_digits else "mean"


def score_title(ranking: Ranking, metric: str) -> str:
    """The heading of what ranks, with the metric in words: digits, or mean accuracy."""
    return "digits" if ranking.has_digits else f"mean {metric}"


def digits_of(metric: str) -> str:
    """What digits are called, those of a squared error as well: its root is the error."""
    return f"digits of the {metric.replace('squared error', 'error')}"


def missing_digits(row: Row) -> str:
    """Digits fewer than the floor's, as a negative number; empty where unknown."""
    if row.at_floor:
        return "at the floor"
    if row.missing_digits is None:
        return ""
    text = f"{row.missing_digits:.2f}"
    return text if float(text) == 0 else f"-{text}"


def score_interval(row: Row) -> str:
    """The bounds of what ranks, with the marks of their kind."""
    write = digits if row.has_digits else linear
    return interval(row.bounds, write, row.seeds)


def interval(bounds: Bounds, write: Callable[[float | None], str] = number, seeds: int = 0) -> str:
    """The bounds of a mean over so many seeds, with the marks of their kind; empty without any."""
    if bounds.kind is None:
        return ""
    mark = bounds_mark(bounds, seeds)
    return f"{write(bounds.low)} … {write(bounds.high)}{' ' if mark else ''}{mark}"


def difference_mark(records: Iterable[Record]) -> str:
    """Why the difference of these records makes none of them better, as a mark; empty otherwise.

    One was trained with one seed, or few values or seeds dominate the mean of one.
    """
    records = list(records)
    if any(map(is_one_training, records)):
        return ONE_SEED
    bounds = [bounds_of(r.metrics[r.ranking.metric], r.ranking) for r in records]
    return "" if all(b.reliable for b in bounds) else UNRELIABLE


def difference(paired: Difference | None, scale: str, mark: str = "") -> str:
    """A paired difference with its interval; digits gained for errors.

    It has `*` if the interval excludes 0, or the mark that says why that tells nothing. A
    difference that the digits shown round to 0 has neither.
    """
    if paired is None or not math.isfinite(paired.mean):
        return ""
    mean, low, high = (fixed(v, 2, "+") if scale == "log" else f"{v:+.3g}" for v in paired[:3])
    if not math.isfinite(paired.low):
        return f"{mean}, no interval"
    if scale == "log" and {mean, low, high} == {"+0.00"}:
        return "0.00"  # two rows at the floor, say: a difference of no account
    if mark:
        return f"{mean} [{low}, {high}] {mark}"
    if not paired.is_significant:
        return f"{mean} [{low}, {high}]"
    # An interval that excludes 0 must not seem to include it.
    low, high = (
        f"{value:+.1g}" if text == "+0.00" else text
        for value, text in ((paired.low, low), (paired.high, high))
    )
    return f"{mean} [{low}, {high}] *"


def rank(row: Row) -> str:
    """The rank, `3–5` for an interval, or why there is none; empty for a reference row."""
    if row.rank is not None:
        return str(row.rank)
    return row.unranked if row.is_trained else ""


def mark(row: Row) -> str:
    """The mark of the row's origin, and of how a trained row was tuned."""
    if not row.is_trained:
        return MARKS[row.origin]
    if not row.is_tuned:
        return UNTUNED
    return TUNED_AT_CHANCE if row.tuned_at_chance else MARKS["trained"]


def marks(rows: Iterable[Row]) -> str:
    """The different marks of rows."""
    return "".join(sorted({mark(row) for row in rows}))


def cell_marks(row: Row) -> list[str]:
    """The marks beside a row's number in a table of models and tasks."""
    tuning = mark(row) if row.is_trained else ""
    shown = [
        "" if tuning == MARKS["trained"] else tuning,
        RANGE if row.bounds.kind == "range over seeds" else "",
        ONE_SEED if is_one_training(row.record) else "",
        CHANCE_MARKS.get(row.chance, ""),
        OFF_BUDGET if used(row) else "",
    ]
    return [text for text in shown if text]


def seeds(row: Row) -> str:
    """How many seeds were trained, and whether another row of the track has more."""
    return f"{row.seeds or ''}{' (fewer)' if row.fewer_seeds else ''}"


def notes(row: Row, stale: bool = True) -> str:
    """What a reader must know of the row: chance, answers and seeds that are lost, and so on.

    Pages that must not depend on the installed code leave the last out.
    """
    is_stale = "stale" if stale and row.stale else ""
    lost = f"{100 * row.lost:.0f}% lost" if row.lost else ""
    return ", ".join(filter(None, [row.chance, lost, diverged(row), used(row), is_stale]))


def diverged(row: Row) -> str:
    """How many seeds diverged; empty for none."""
    return f"{row.diverged} diverged" if row.diverged else ""


def used(row: Row) -> str:
    """How much of its budget a row used, if that is much more or less; else empty."""
    if row.used is None or abs(row.used - 1) <= NEAR_BUDGET:
        return ""
    return f"used {100 * row.used:.0f}% of its budget"


def parameters(record: Record) -> str:
    """The number of parameters, where it is known."""
    return "" if (known := known_parameters(record)) is None else f"{known:,}"


def origin(row: Row) -> str:
    """The origin of the weights with its mark."""
    construction = f": {row.construction}" if row.construction is not None else ""
    tuning = {UNTUNED: "not tuned", TUNED_AT_CHANCE: "tuned at chance"}.get(mark(row), "")
    facts = [f"{mark(row)} {row.origin}{construction}", start(row), tuning]
    return ", ".join(filter(None, facts))


def start(row: Row) -> str:
    """What the training started from, if not from drawn weights; else empty."""
    init = row.record.spec.init
    return f"from {file_name(init, row.record.spec.checkpoint_digest)}" if init else ""


def file_name(path: str, digest: str | None) -> str:
    """The name of a construction, whose `digest` is None, or of a checkpoint with its digest.

    A checkpoint's folder means nothing on another machine, and neither does a name that is the
    digest of its content.
    """
    if digest is None:
        return path
    name = PurePath(path).stem
    is_digest = re.fullmatch(r"[0-9a-f]{64}", name) is not None
    return digest[:8] if is_digest else f"{name[:MOST_NAME]}@{digest[:8]}"


def held_out(row: Row) -> str:
    """The score on held-out prompts, with a note where it differs significantly from the row's."""
    if row.held_out is None:
        return ""
    differs = " differs" if row.held_out_differs else ""
    return score(row.held_out_score, row.record.ranking) + differs


def spread(row: Row) -> str:
    """The lowest and highest score of the seeds; empty for fewer than two."""
    if len(row.seed_scores) < 2:
        return ""
    known = [value for value in row.seed_scores if value is not None]
    ends = (min(known), max(known)) if known else (None, None)
    lost = len(row.seed_scores) - len(known)
    text = " … ".join(score(value, row.record.ranking) for value in ends)
    return f"{text}, {lost} {NOT_FINITE}" if lost and known else text


def budget(steps: int | None, batch: int | None) -> str:
    """Training steps × prompts per step; empty if nothing was trained."""
    return "" if steps is None or batch is None else f"{steps:,} × {batch:,}"


def seconds(value: float) -> str:
    """Seconds with one decimal, or with two figures below one."""
    return f"{value:.1f} s" if value >= 1 else f"{value:.2g} s"


def in_words(name: str) -> str:
    """A name of the code as an axis writes it."""
    return name.replace("_", " ")


def device(name: str, threads: int) -> str:
    """The device; for a CPU with its number of threads."""
    return f"{name} ({counted(threads, 'thread')})" if name == "cpu" else name
