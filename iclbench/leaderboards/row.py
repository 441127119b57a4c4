"""Row: one line of a board, made once; the tables, pages, exports and the site only read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..api.budget import Budget
from ..api.ranking import Ranking
from ..api.record import Record
from ..api.statistics import Statistics
from ..runs.heldout import HeldOut
from . import held_out
from .bounds import Bounds, mean_bounds
from .paired import Difference, difference
from .ranking import Rank, at_floor
from .tunings import is_tuned, tuned_at_chance

#: The digits k at which a precision profile is taken.
PROFILE = range(17)
#: What classification tasks call the fraction of right answers.
ACCURACY = "accuracy"

#: A row that took so many times its budget is not ranked among those that kept to it.
OVER_BUDGET = 2.0
#: The track of trained rows that chose their own budgets.
OPEN = "open"


@dataclass(frozen=True)
class Row:
    """Every fact that a line of a board shows, in the units of the ranked metric.

    None stands for a number that is not finite, or that the record does not have.
    """

    record: Record
    #: TASK/MODEL-ID.json, below the folder of records.
    file: str
    label: str

    #: What ranks, (seeds, prompts), where a second axis is averaged: digits, at most those that
    #: count, or the metric itself.
    ranked: np.ndarray
    #: None for a row that is not ranked; `unranked` then is the reason.
    rank: Rank | None
    unranked: str
    #: `ranked` of the row above in its group; None for the first.
    ranked_above: np.ndarray | None
    #: The mark of the difference to that row, see `difference_mark`.
    mark_above: str
    #: The digits of the values and of the floor's, where digits rank and the floor is known.
    digits: np.ndarray | None
    floor_digits: np.ndarray | None

    statistics: Statistics
    #: The statistic that ranks: overall, its bounds, for each seed, and of the floor.
    score: float | None
    bounds: Bounds
    seed_scores: tuple[float | None, ...]
    floor_score: float | None
    #: The 1% worst: the 99% quantile of the metric, or the 1% quantile if higher is better.
    worst: float | None
    #: `chance` for a model that ignores the examples; for others what a paired test on the board's
    #: best such row says: `at chance`, `perhaps at chance` (its interval holds 0, and more than is
    #: near), `worse than chance`; empty for a row that is better.
    chance: str
    #: What ranks of the board's best row of chance, (1, prompts); None if there is none.
    chance_values: np.ndarray | None
    #: The plugins whose installed code is not what made the record.
    stale: tuple[str, ...]
    #: The same weights on prompts that were drawn after the submission; None where there are none.
    held_out: HeldOut | None = None
    #: Whether the row was trained with fewer seeds than another row of its track.
    fewer_seeds: bool = False

    # What few pages show is computed when it is asked for: tables of 10,000 rows need none of it.

    @cached_property
    def above(self) -> Difference | None:
        """The paired difference to the row above in its group, of `ranked`; None for the first."""
        if self.ranked_above is None:
            return None
        return difference(self.ranked, self.ranked_above, in_digits=self.has_digits)

    @cached_property
    def at_floor(self) -> bool:
        """Whether the median and the 1% worst are those of an exact floor, up to one digit.

        Never of answers that nobody asks for again, nor of a row that is not credible.
        """
        is_claimed = self.origin == "asked" or not self.is_credible
        if self.record.main.floor.kind != "exact" or is_claimed:
            return False
        if self.digits is None or self.floor_digits is None:
            return False
        return at_floor(self.digits, self.floor_digits)

    @cached_property
    def profile(self) -> tuple[float, ...] | None:
        """The fraction of values solved to at least k digits, k in PROFILE; None without digits."""
        return None if self.digits is None else profile(self.digits)

    @cached_property
    def lost(self) -> float:
        """The share of answers not finite or beyond the limit of errors; 0 if it is below 1%.

        The limit is 1,000 root mean squares, about −3 digits for targets near 1; nothing is said
        of much smaller ones. Each batch of prompts has its own, near the others', which these
        answers share.
        """
        if self.digits is None or (worst := self.digits.min()) > -2:
            return 0.0
        _, counts = np.unique(self.digits[self.digits <= worst + 0.5], return_counts=True)
        share = float(counts[counts > 1].sum()) / self.digits.size
        return share if share >= 0.01 else 0.0

    @property
    def accuracy(self) -> float | None:
        """The mean accuracy of a row that is ranked by something else; None if it has none."""
        known = self.record.metrics.get(ACCURACY)
        return None if known is None or self.record.ranking.metric == ACCURACY else known.mean

    @property
    def has_digits(self) -> bool:
        """Whether the task ranks by the digits of an error."""
        return self.record.ranking.has_digits

    @property
    def mean_bounds(self) -> Bounds:
        """The bounds of the metric's mean, which does not rank where digits do."""
        return mean_bounds(self.statistics)

    @property
    def missing_digits(self) -> float | None:
        """How many mean digits fewer than the floor's; 0 for as many or more."""
        if not self.has_digits or self.score is None or self.floor_score is None:
            return None
        return max(0.0, self.floor_score - self.score)

    @property
    def goodness(self) -> float:
        """The score with a sign that makes more better; −∞ where there is none."""
        return self.record.ranking.goodness(self.score)

    @property
    def origin(self) -> str:
        """The origin of the weights."""
        return self.record.spec.origin

    @property
    def is_trained(self) -> bool:
        """Whether the weights were trained for the row, which may have no rank all the same."""
        return self.origin == "trained"

    @property
    def is_tuned(self) -> bool:
        """Whether a search chose the settings of the training."""
        return is_tuned(self.record)

    @property
    def tuned_at_chance(self) -> bool:
        """Whether no trial of the search was clearly better than chance."""
        return tuned_at_chance(self.record, self.chance_values)

    @property
    def track(self) -> str:
        """The training budget's class; empty for a row without."""
        return self.record.track or ""

    @property
    def track_name(self) -> str:
        """The track as tables name it, see `track_name`."""
        return track_name(self.record)

    @property
    def used(self) -> float | None:
        """The time that a seed took, as a share of its track's budget; None for a row without."""
        return used_part(self.record)

    @property
    def label_in_track(self) -> str:
        """The label where the track is shown beside it."""
        return self.label.removesuffix(f" track={self.track}")

    @property
    def arguments(self) -> str:
        """The settings of the label, without the model and the track."""
        return self.label_in_track.removeprefix(self.record.spec.model).strip()

    @property
    def construction(self) -> str | None:
        """The name of the construction, if the weights are constructed."""
        return self.record.spec.weights if self.origin == "constructed" else None

    @property
    def seeds(self) -> int:
        """How many seeds were trained; 0 if none is known."""
        return sum(seed.seed is not None for seed in self.record.seeds)

    @property
    def diverged(self) -> int:
        """How many of the seeds diverged."""
        return sum(seed.diverged_at is not None for seed in self.record.seeds)

    @property
    def steps(self) -> int | None:
        """Training steps."""
        return self.record.training.steps if self.record.training else None

    @property
    def batch(self) -> int | None:
        """Prompts per training step."""
        return self.record.training.batch if self.record.training else None

    @property
    def seconds(self) -> float:
        """Seconds of training, or of the evaluation if nothing was trained."""
        training = self.record.training
        return training.seconds if training else self.record.main.seconds

    @property
    def held_out_score(self) -> float | None:
        """The statistic that ranks, on the held-out prompts."""
        if self.held_out is None:
            return None
        return self.record.ranking.score(self.held_out.statistics)

    @property
    def held_out_differs(self) -> bool:
        """Whether the score on held-out prompts differs significantly."""
        return held_out.differs(self.record, self.held_out)

    @property
    def fails_held_out(self) -> bool:
        """Whether the score on held-out prompts is significantly worse."""
        return held_out.fails(self.record, self.held_out)

    @property
    def is_credible(self) -> bool:
        """Whether no held-out prompts contradict the row, and none are due for it."""
        return not self.fails_held_out and self.unranked != held_out.PENDING

    @property
    def proof(self) -> str:
        """What was checked: evaluated, retrained, or answers as recorded; empty for nothing."""
        if self.record.proof is None:
            return ""
        return "answers as recorded" if self.origin == "asked" else self.record.proof.kind


def track_name(record: Record) -> str:
    """The record's track, OPEN for trained weights without one, and empty for other origins."""
    return (record.track or OPEN) if record.spec.origin == "trained" else ""


def in_track(track: str) -> str:
    """Where rows are: `in track 10m`, or `with open budgets` for OPEN or no track."""
    return "with open budgets" if track in {"", OPEN} else f"in track {track}"


def worst(statistics: Statistics, ranking: Ranking) -> float | None:
    """The metric's 1% worst."""
    return statistics.q99 if ranking.better == "lower" else statistics.q01


def used_part(record: Record) -> float | None:
    """The time that a seed took, as a share of its track's budget; None where either is unknown."""
    try:
        asked = Budget.parse(record.track or "")
    except ValueError:  # none, or one that is no duration
        return None
    if record.budget is None:
        return None
    seconds = record.budget.device_seconds if asked.on_gpu else record.budget.core_seconds
    return None if seconds is None else seconds / asked.seconds


def is_over_budget(record: Record) -> bool:
    """Whether it took so much more than its budget that it has the advantage of a longer track."""
    return (used_part(record) or 0.0) > OVER_BUDGET


def profile(digits: np.ndarray) -> tuple[float, ...]:
    """The fraction of values with at least k digits, for each k in PROFILE."""
    return tuple((digits.reshape(-1, 1) >= np.array(PROFILE)).mean(axis=0).tolist())


def credible(rows: Iterable[Row]) -> list[Row]:
    """The rows that may stand for their models: those that `is_credible` holds for."""
    return [row for row in rows if row.is_credible]
