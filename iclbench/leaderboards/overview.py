"""The overview: every model's best row on every task, for each dtype and origin of weights.

Rows that have a rank come before those with one seed or given weights, see `representative.py`. Of
these, a row in the track of most of a board's models comes before one in another track. A task may
have several boards, of other settings or numbers of prompts. One of them stands for it, here and on
the site's first page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .board import Board
from .representative import representing
from .row import Row, credible


class Standing(NamedTuple):
    """The board that stands for a title, and those of its rows that are looked at."""

    board: Board
    rows: list[Row]


@dataclass(frozen=True)
class Overview:
    """One dtype and origin: a board for each title, in the order of titles, and the best rows."""

    dtype: str
    origin: str
    boards: tuple[Board, ...]
    #: In the order of names.
    models: tuple[str, ...]
    #: (title, model) → the row that stands for the model
    best: dict[tuple[str, str], Row]


def overviews(boards: Sequence[Board]) -> list[Overview]:
    """One overview for each dtype and origin that has rows; trained rows come first."""
    kinds = {(board.dtype, row.origin) for board in boards for row in credible(board.rows)}
    ordered = sorted(kinds, key=lambda kind: (kind[0], kind[1] != "trained", kind[1]))
    return [_overview(boards, dtype, origin) for dtype, origin in ordered]


def _overview(boards: Sequence[Board], dtype: str, origin: str) -> Overview:
    of_dtype = [board for board in boards if board.dtype == dtype]
    chosen = standing_for_titles(_with_rows(of_dtype, origin), boards_of_trained(of_dtype))
    best: dict[tuple[str, str], Row] = {}
    for title, standing in chosen.items():
        # Who trained for longer is not compared with who trained for less.
        track = standing.board.tracks[0] if origin == "trained" else ""
        # The first of equal rows represents the model.
        rows_of_models = representing(standing.rows)
        for row in sorted(rows_of_models, key=lambda row: (row.track != track, -row.goodness)):
            best.setdefault((title, row.record.spec.model), row)
    models = tuple(sorted({model for _, model in best}))
    return Overview(dtype, origin, tuple(chosen[t].board for t in sorted(chosen)), models, best)


def boards_of_trained(boards: Sequence[Board]) -> list[Board]:
    """The boards that stand for their titles by trained rows; other origins have the same ones."""
    standings = standing_for_titles(_with_rows(boards, "trained")).values()
    return [standing.board for standing in standings]


def _with_rows(boards: Iterable[Board], origin: str) -> Iterator[tuple[Board, list[Row]]]:
    """The boards, each with its credible rows of an origin."""
    for board in boards:
        yield board, [row for row in credible(board.rows) if row.origin == origin]


def standing_for_titles(
    boards: Iterable[tuple[Board, list[Row]]], preferred: Sequence[Board] = ()
) -> dict[str, Standing]:
    """Which board stands for each title, of boards with those of their rows that are looked at.

    It is of the task's newest version. One of the `preferred` comes first, then a board with a
    training budget, the one with most models, and with most rows. Boards without rows stand for
    nothing.
    """
    chosen: dict[str, tuple[tuple[int, bool, bool, int, int], Standing]] = {}
    for board, rows in boards:
        models = {row.record.spec.model for row in rows}
        is_preferred = any(board is one for one in preferred)
        extent = (board.task_version, is_preferred, board.has_tracks, len(models), len(rows))
        if rows and (board.title not in chosen or extent > chosen[board.title][0]):
            chosen[board.title] = extent, Standing(board, rows)
    return {title: standing for title, (_, standing) in chosen.items()}
