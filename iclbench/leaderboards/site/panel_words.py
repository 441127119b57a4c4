"""The sentence below a panel of the home page: who leads, how far from the floor, who learns."""

from __future__ import annotations

from collections.abc import Sequence

from ..board import Board
from ..descriptions import Descriptions
from ..ranking import Rank
from ..row import Row
from ..scale import board_scale
from .minus import with_minus
from .settings import best_by_model, trained

#: The most models that a sentence names.
MOST_NAMED = 3


def panel_sentence(board: Board, track: str, about: Descriptions) -> str:
    """What the ranks, the floor and chance say of the models that were trained in a track.

    Empty without any. It says nothing of the order of scores that no test supports.
    """
    every = best_by_model(trained(board, track))
    rows = [row for row in every if row.score is not None]
    diverged = len(every) - len(rows)
    of_diverged = f"{diverged} of {len(every)} diverged" if diverged else ""
    if not rows:
        return f"{of_diverged}." if of_diverged else ""
    if all(_is_not_better_than_chance(row) for row in rows):
        return " ".join(
            filter(None, [_none_learns(rows, about), of_diverged and f"{of_diverged}."])
        )
    first = next(row for row in rows if not _is_not_better_than_chance(row))
    parts = [_lead(every, trained(board, track), about)]
    if distance := _distance(first, board, about):
        parts.append(f"{_title(first, about)} {distance}")
    if at_chance := sum(map(_is_not_better_than_chance, rows)):
        verb = "is" if at_chance == 1 else "are"
        parts.append(f"{at_chance} of {len(every)} {verb} not significantly better than chance")
    if of_diverged:
        parts.append(of_diverged)
    return f"{'; '.join(parts)}."


def _none_learns(rows: Sequence[Row], about: Descriptions) -> str:
    if len(rows) == 1:
        return f"{_title(rows[0], about)}, the only model, is not significantly better than chance."
    return f"None of the {len(rows)} models is significantly better than chance."


def _is_not_better_than_chance(row: Row) -> bool:
    return row.chance != ""


def _title(row: Row, about: Descriptions) -> str:
    return about.model(row.record.spec.model).title


def _lead(rows: Sequence[Row], of_track: Sequence[Row], about: Descriptions) -> str:
    """Which models no ranked row is significantly better than."""
    if len(rows) == 1:
        models = {row.record.spec.model for row in of_track}
        only = "was trained" if len(models) == 1 else "has a row that counts"
        return f"Only {_title(rows[0], about)} {only}"
    ranks = [row.rank for row in of_track if row.rank is not None]
    if not ranks:
        return f"None of the {len(rows)} models has a rank"
    leaders = {r.record.spec.model: r for r in of_track if r.rank is not None and r.rank.first == 1}
    titles = [about.model(model).title for model in leaders]
    if set(ranks) == {Rank(1, len(ranks))}:
        return "No two models differ significantly"
    count = len({row.record.spec.model for row in of_track if row.rank is not None})
    # Rows without a rank are not compared.
    ranked = "ranked " * (count < len(rows))
    if Rank(1, 1) in ranks:
        return f"{titles[0]} is significantly better than all other {ranked}models"
    if len(titles) <= MOST_NAMED:
        return f"No {ranked}model is significantly better than {' or '.join(titles)}"
    return f"The lead is open: {len(titles)} of {count} models have no significantly better one"


def _distance(row: Row, board: Board, about: Descriptions) -> str:
    """How far a row is from the floor or another reference; empty where neither is known."""
    if row.at_floor:
        return "is at the floor"
    if row.missing_digits is not None and board.floor is not None:
        if round(row.missing_digits, 1) == 0:
            return f"reaches the {_floor_name(board)}"
        return f"is {row.missing_digits:.1f} digits short of the {_floor_name(board)}"
    scale = board_scale(board)
    score = scale.score(row.record)
    if score is None or not scale.reference_name:
        return ""  # the best row would be measured by itself
    name = _floor_name(board) if board.floor else about.model(scale.reference_name).title
    if round(score.value, 2) > 1:
        return f"passes {_the(name, board)}"
    percent = with_minus(f"{max(0, score.value):.0%}")
    return f"is {percent} of the way from chance to {_the(name, board)}"


def _the(name: str, board: Board) -> str:
    return f"the {name}" if board.floor else name


def _floor_name(board: Board) -> str:
    """The floor in a sentence: the attainable, a target, or the floor."""
    if board.floor is None or board.floor.kind == "none":
        return "target"
    return "attainable" if board.floor.kind == "exact" else "floor"
