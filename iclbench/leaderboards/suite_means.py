"""The means of a suite's scores, with their intervals, and what ranks follow from these."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from scipy.special import ndtri

from .paired import SIGNIFICANCE
from .ranking import Rank
from .scale import Score


def mean_score(scores: Iterable[Score]) -> Score | None:
    """The mean of boards' scores, each counted as at least 0 and at most 1, with its interval.

    A reference may be far below what can be reached, and errors have no lowest score: a mean of
    scores as they are would be that of one board.

    Boards are independent, so the squared distances of the bounds add up (Zou and Donner 2008).
    Those are the distances to a board's own bounds, not to bounds that are cut at 0 and 1: a score
    that is cut at 0 is never too low, so boards at chance would seem to be surely above it. The cut
    bounds of a board are added as they are where its interval is longer than the scale, which else
    would take over the sum, or beyond one of its ends.
    """
    scores = list(scores)
    if not scores:
        return None
    count = len(scores)
    mean = sum(score.clipped.value for score in scores) / count
    downward = upward = least = most = 0.0
    for score in scores:
        value, cut_low, cut_high = score.clipped
        if score.low is None or score.high is None or cut_low is None or cut_high is None:
            return Score(mean, None, None)
        if score.high - score.low > 1.0 or cut_low == cut_high:
            least, most = least + cut_low, most + cut_high
        else:
            least, most = least + value, most + value
            downward += max(value - score.low, 0.0) ** 2
            upward += max(score.high - value, 0.0) ** 2
    low, high = (least - math.sqrt(downward)) / count, (most + math.sqrt(upward)) / count
    return Score(mean, max(low, 0.0), min(high, 1.0))


def suite_ranks(by_model: Sequence[Sequence[Score]]) -> list[Rank]:
    """The ranks of models by their mean scores; each has those of the same boards, in order.

    No model's interval on a board is shorter there than that of the median model: where some seeds
    make a transition that others miss, all seeds of a model may be of one kind by chance, and then
    agree. `benchmarks/coverage_suites.py` simulates how often equal models are ordered.
    """
    by_board = [_at_least_median(scores) for scores in zip(*by_model, strict=True)]
    lengthened = zip(*by_board, strict=True)
    means = [_longest(*pair) for pair in zip(by_model, lengthened, strict=True)]
    return [_rank(mean, means) for mean in means]


def _longest(*alternatives: Sequence[Score]) -> Score | None:
    """The mean of one model's scores, with the outermost of the bounds that it has in each.

    A longer interval on a board may shorten that of the mean, where bounds are cut instead.
    """
    means = [mean for scores in alternatives if (mean := mean_score(scores)) is not None]
    lows, highs = ([getattr(mean, end) for mean in means] for end in ("low", "high"))
    if not means or None in lows or None in highs:
        return means[0] if means else None
    return Score(means[0].value, min(lows), max(highs))


def _at_least_median(scores: Sequence[Score]) -> list[Score]:
    """The models' scores on a board, with no bound nearer than that of the median model."""
    known = [(s, s.low, s.high) for s in scores if s.low is not None and s.high is not None]
    if not known:
        return list(scores)
    below = statistics.median(score.value - low for score, low, _ in known)
    above = statistics.median(high - score.value for score, _, high in known)
    return [
        score
        if score.low is None or score.high is None
        else Score(
            score.value, min(score.low, score.value - below), max(score.high, score.value + above)
        )
        for score in scores
    ]


def _rank(mean: Score | None, among: Sequence[Score | None]) -> Rank:
    """From one more than the intervals above the mean's to how many are not below it.

    The intervals hold for all of `among` at once: each is as much longer as that of a normal value
    is at the level of Bonferroni.
    """
    longer = ndtri(1 - SIGNIFICANCE / 2 / len(among)) / ndtri(1 - SIGNIFICANCE / 2)
    (low, high), *others = [_ends(one, longer) for one in (mean, *among)]
    above = sum(other_low > high for other_low, _ in others)
    return Rank(above + 1, sum(other_high >= low for _, other_high in others))


def _ends(mean: Score | None, longer: float) -> tuple[float, float]:
    """The bounds of a mean at so many times their distance; without any, it may lie anywhere."""
    if mean is None or mean.low is None or mean.high is None:
        return -math.inf, math.inf
    return (
        mean.value - longer * (mean.value - mean.low),
        mean.value + longer * (mean.high - mean.value),
    )
