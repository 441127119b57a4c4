"""Groups: the rows of comparable records, in order, each ranked among the rows of its track.

Trained rows of one track are ranked among themselves. All other rows stand beside them as lines of
reference, in the order of the same statistic.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..api.budget import Budget
from ..api.digits import digits
from ..api.record import PluginReference, Record
from ..api.results import FileReference
from ..api.tuning import negligible_gain
from ..runs.code import stale_code
from ..runs.heldout import HeldOut, read_held_out
from ..runs.prompt_values import floor_values, prompt_values
from ..runs.statistics import GRADE
from . import held_out
from .bounds import bounds_of
from .floor import floor_of
from .formats import difference_mark
from .labels import labels_of
from .paired import difference
from .ranking import (
    Rank,
    best_first,
    ranked_values,
    ranks,
)
from .representative import (
    has_chosen_seeds,
    has_only_diverged,
    is_one_training,
    starts_from_given,
)
from .row import Row, is_over_budget, worst

#: Why a row has no rank.
SINGLE, REFERENCE = "one seed", "reference"
GIVEN, CHOSEN, OVER, ALONE = "given weights", "chosen seeds", "over budget", "alone"
DIVERGED = "diverged"


@dataclass(frozen=True)
class Measured:
    """The values of a record's prompts, (seeds, prompts); those of the floor, (prompts,)."""

    values: np.ndarray
    ranked: np.ndarray
    #: The digits of the values and of the floor's, where digits rank and the floor is known.
    digits: np.ndarray | None = None
    floor_digits: np.ndarray | None = None
    held_out: HeldOut | None = None

    @property
    def scored(self) -> np.ndarray:
        """The values whose mean is the score."""
        return self.values if self.digits is None else self.digits


@dataclass(frozen=True)
class Standing:
    """What a row has from its board."""

    label: str
    rank: Rank | None
    unranked: str
    #: `ranked` of the row above; None for the first.
    above: np.ndarray | None
    #: The mark of the difference to that row, see `difference_mark`.
    mark_above: str
    #: Whether another row of the group has more seeds.
    fewer_seeds: bool
    #: What ranks of the board's best row of chance; None if there is none.
    chance: np.ndarray | None


def rows_of(
    paths: Mapping[str, Path],
    records: Sequence[Record],
    installed: Mapping[str, PluginReference] | None = None,
) -> tuple[Row, ...]:
    """The rows of comparable records, group by group and best first.

    `paths` maps a record's id to its file; `installed` is as in `stale_code`. Raises RecordError if
    the values of a record's prompts are missing or were changed.
    """
    floors: dict[FileReference, np.ndarray] = {}
    measured = [_measured(paths[record.id], record, floors) for record in records]
    if records[0].ranking.metric.startswith(GRADE):
        measured = _graded_for_all(measured)
    labels, rows = labels_of(records), []
    places = [(paths[r.id], r, m.held_out) for r, m in zip(records, measured, strict=True)]
    pending = held_out.pending(places)
    for group in _groups(records):
        for i, standing in _standings(records, measured, labels, group, pending):
            record = records[i]
            stale = tuple(stale_code(record, installed))
            rows.append(_row(record, paths[record.id], measured[i], standing, stale))
    return tuple(rows)


def _groups(records: Sequence[Record]) -> list[list[int]]:
    """The indices of the trained records of each track, and last those of all others.

    The track with the most training comes first, and records without one after all tracks.
    """
    groups: dict[tuple[bool, str], list[int]] = {}
    for i, record in enumerate(records):
        is_trained = record.spec.origin == "trained"
        track = (record.track or "") if is_trained else ""
        groups.setdefault((not is_trained, track), []).append(i)
    return [groups[key] for key in sorted(groups, key=lambda key: (key[0], by_training(key[1])))]


def by_training(track: str) -> tuple[bool, bool, int, str]:
    """A key that sorts tracks: those of a GPU, then those without a budget in their name, such as
    `paper`, then those of a CPU, the longest first of each, and last rows without a track.
    """
    try:
        budget = Budget.parse(track)
    except ValueError:
        return not track, False, 0, track
    return False, not budget.on_gpu, -budget.seconds, track


def _standings(
    records: Sequence[Record],
    measured: Sequence[Measured],
    labels: Sequence[str],
    group: Sequence[int],
    pending: Container[str],
) -> list[tuple[int, Standing]]:
    """The indices of a group's records, best first, with what each has from the board.

    `pending` are the ids of rows that wait for their held-out evaluation.
    """
    direction = records[0].ranking.better_score
    names = [(records[i].spec.model, records[i].id) for i in group]
    # Rows that are ranked are in the order of what is tested, the others in that of their scores.
    trained = records[group[0]].spec.origin == "trained"
    shown = [measured[i].ranked if trained else measured[i].scored for i in group]
    ordered = [group[k] for k in best_first(shown, names, direction)]
    chance = _chance(records, measured)
    reasons = {
        i: _unranked(records[i], measured[i].held_out, records[i].id in pending) for i in ordered
    }
    ranked = [i for i in ordered if not reasons[i]]
    if len(ranked) == 1:
        # A rank of 1 would say that the row is better than others.
        reasons[ranked.pop()] = ALONE
    most_seeds = max(len(records[i].seeds) for i in group)
    in_digits = records[0].ranking.has_digits
    of_ranked = ranks([measured[i].ranked for i in ranked], direction, in_digits=in_digits)
    by_row = dict(zip(ranked, of_ranked, strict=True))
    standings = []
    above: int | None = None
    for i in ordered:
        pair = [i] if above is None else [i, above]
        standing = Standing(
            labels[i],
            by_row.get(i),
            reasons[i],
            None if above is None else measured[above].ranked,
            difference_mark(records[k] for k in pair),
            trained and len(records[i].seeds) < most_seeds,
            chance,
        )
        standings.append((i, standing))
        above = i
    return standings


def _unranked(record: Record, evaluated: HeldOut | None, is_pending: bool) -> str:
    """Why the row is not ranked; empty for one that is."""
    reasons = {
        REFERENCE: record.spec.origin != "trained",
        held_out.FAILING: held_out.fails(record, evaluated),
        held_out.PENDING: is_pending,
        GIVEN: starts_from_given(record),
        SINGLE: is_one_training(record),
        OVER: is_over_budget(record),
        DIVERGED: has_only_diverged(record),
        CHOSEN: has_chosen_seeds(record),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _chance(records: Sequence[Record], measured: Sequence[Measured]) -> np.ndarray | None:
    """What ranks of the best row that ignores the examples, or None if there is none."""
    of_chance = [part.ranked for r, part in zip(records, measured, strict=True) if r.chance]
    ordered = best_first(of_chance, [()] * len(of_chance), records[0].ranking.better_score)
    return of_chance[ordered[0]] if ordered else None


def _against_chance(record: Record, ranked: np.ndarray, chance: np.ndarray | None) -> str:
    """What the row says of chance; empty for a row that is better, or where chance is unknown."""
    if record.chance:
        return "chance"
    if chance is None or not np.isfinite(chance).all():
        return ""
    if not np.isfinite(ranked).all():
        return "worse than chance"
    paired = difference(ranked, chance, in_digits=record.ranking.has_digits)
    if not paired.is_significant:
        near = negligible_gain(record.ranking, float(chance.mean()))
        is_near = -near <= paired.low and paired.high <= near
        return "at chance" if is_near else "perhaps at chance"
    is_better = (paired.mean > 0) == (record.ranking.better_score == "higher")
    return "" if is_better else "worse than chance"


def _measured(path: Path, record: Record, floors: dict[FileReference, np.ndarray]) -> Measured:
    """What a record measured; `floors` has the digits of floors, which rows of a board share."""
    name = record.ranking.metric
    values = prompt_values(path, record, name)
    kind = record.metrics[name].digits
    evaluated = read_held_out(path, record)
    if kind is None or not record.ranking.has_digits:
        return Measured(values, values, held_out=evaluated)
    reached = digits(values, kind.error)
    if name not in record.main.floor.values:
        return Measured(values, reached, reached, held_out=evaluated)
    reference = record.main.floor.values[name]
    if reference not in floors:
        floors[reference] = digits(floor_values(path, record, name), kind.error)
    # A model may pass a target by more than rounding.
    attainable = floors[reference] if record.main.floor.kind == "exact" else None
    ranked = ranked_values(reached, attainable)
    return Measured(values, ranked, reached, floors[reference], evaluated)


def _graded_for_all(measured: Sequence[Measured]) -> list[Measured]:
    """What was measured on the prompts that were graded for every record."""
    graded = graded_in_all([part.values for part in measured])
    return [Measured(part.values[:, graded], part.ranked[:, graded]) for part in measured]


def graded_in_all(values: Sequence[np.ndarray]) -> np.ndarray:
    """The prompts whose grade is known in all of these (seeds, prompts) that have any.

    All prompts if there is none.
    """
    with_any = [of_row for of_row in values if not np.isnan(of_row).all()]
    known = ~np.isnan(np.concatenate(with_any or values)).any(axis=0)
    return known if known.any() else np.ones_like(known)


def _row(
    record: Record,
    path: Path,
    measured: Measured,
    standing: Standing,
    stale: tuple[str, ...],
) -> Row:
    ranking = record.ranking
    statistics, floor = record.metrics[ranking.metric], floor_of(record)
    bounds = bounds_of(statistics, ranking)
    return Row(
        record=record,
        file=f"{record.spec.task}/{path.name}",
        label=standing.label,
        ranked=measured.ranked,
        rank=standing.rank,
        unranked=standing.unranked,
        ranked_above=standing.above,
        mark_above=standing.mark_above,
        fewer_seeds=standing.fewer_seeds,
        digits=measured.digits,
        floor_digits=measured.floor_digits,
        statistics=statistics,
        score=record.score,
        bounds=bounds,
        seed_scores=tuple(ranking.score(seed[ranking.metric]) for seed in record.main.seeds),
        floor_score=floor.score if floor else None,
        worst=worst(statistics, ranking),
        chance=_against_chance(record, measured.ranked, standing.chance),
        chance_values=standing.chance,
        stale=stale,
        held_out=measured.held_out,
    )
