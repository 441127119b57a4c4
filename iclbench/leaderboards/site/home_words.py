"""Three lines below the title of the home page: what the numbers are, how sure, how long trained.

All of them are counted in the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ...console import counted
from ..board import Board
from ..level import has_digits_level
from ..row import Row
from ..sizes import known_parameters
from . import settings


def home_lines(boards: Sequence[Board]) -> list[tuple[str, str]]:
    """The question that each line answers, and its answer."""
    rows = [row for board in boards for row in board.rows]
    trained = [row for row in rows if row.is_trained]
    lines = [("What the numbers are", _numbers(boards))]
    if trained:
        lines.append(("How sure they are", _certainty(trained, len(rows))))
        lines.append(("How long models were trained", _training(trained)))
    return lines


def _numbers(boards: Sequence[Board]) -> str:
    tasks = {board.task for board in boards}
    in_digits = {board.task for board in boards if has_digits_level(board.first)}
    digits = (
        "Correct digits of the answer, −log₁₀ of its error: 3 digits are an error of 0.001. The "
        "attainable digits are those of the exact answer, rounded once to the dtype."
    )
    metric = "such as the negative log-likelihood."
    if not in_digits:
        return f"The mean of each task's metric, {metric}"
    if in_digits == tasks:
        return digits
    others = len(tasks - in_digits)
    shows = "shows the mean of its metric" if others == 1 else "show the mean of their metric"
    return f"{digits} {others} of {len(tasks)} tasks {shows}, {metric}"


def _certainty(trained: Sequence[Row], count: int) -> str:
    seeds = Counter(row.seeds for row in trained)
    prompts = Counter(row.record.main.prompts for row in trained)
    least, most = min(seeds), max(seeds)
    usual = counted(seeds.most_common(1)[0][0], "seed")
    spread = f" ({least} to {most})" if least < most else ""
    mostly = "mostly " if least < most else ""
    on = f"{'usually ' * (len(prompts) > 1)}on {prompts.most_common(1)[0][0]:,} prompts"
    return (
        f"{len(trained):,} of {count:,} results are of trained models, {mostly}with {usual}"
        f"{spread}, {on}. Ranks come from paired tests on the same prompts: a rank such as 3–5 is "
        "the range of places that the tests leave open. With few seeds it is wide, even where "
        "intervals are apart."
    )


def _training(trained: Sequence[Row]) -> str:
    tracks = Counter(row.track for row in trained)
    parts = [
        f"{size:,} for {settings.budget_in_words(track)} (track {track})"
        for track, size in tracks.most_common()
        if track
    ]
    if tracks[""]:
        parts.append(f"{tracks['']:,} for as long as their authors chose (open budgets)")
    count = counted(len(trained), "result")
    listed = _listed(parts).removeprefix(f"{len(trained):,} ")
    text = f"Of {count}, {listed}." if len(parts) > 1 else f"{count}: {listed}."
    if sizes := _sizes(trained):
        text += f" {sizes}"
    return f"{text} A result is what a model reached in that time, not the best that it can do."


def _sizes(trained: Iterable[Row]) -> str:
    """The middle half of the numbers of parameters; empty where none is known."""
    known = [size for row in trained if (size := known_parameters(row.record)) is not None]
    if not known:
        return ""
    low, high = (float(q) for q in np.quantile(known, [0.25, 0.75]))
    if low == high:
        return f"The usual model has {_rounded(low)} parameters."
    return f"Half of the models have {_rounded(low)} to {_rounded(high)} parameters."


def _rounded(value: float) -> str:
    """A number of parameters with two figures."""
    return f"{float(f'{value:.2g}'):,.0f}"


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
