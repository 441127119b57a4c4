"""What compare/TASK.html shows: the choices, and the facts of rows that its script compares."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import numpy as np

from ...console import counted
from .. import formats
from ..board import Board
from ..descriptions import Descriptions
from ..paired import SIGNIFICANCE, common_sign, of_seeds
from ..row import Row
from ..sizes import known_parameters
from . import settings
from .figure import View, script_json
from .minus import with_minus
from .plots import name_of
from .task_words import evaluation_title, told_apart_by_evaluation


def choices(boards: Sequence[Board], about: Descriptions) -> View:
    """The boards of a task, and the rows of each, which can be compared."""
    task = about.task(boards[0].task)
    ordered = [board for group in settings.by_evaluation(boards).values() for board in group]
    has_dtypes = len({board.dtype for board in boards}) > 1
    titles = [
        evaluation_title(board, task) + (f", {board.dtype}" if has_dtypes else "")
        for board in ordered
    ]
    # The numbers of prompts follow each of them on the page.
    titles = told_apart_by_evaluation(titles, ordered)
    evaluations = [
        {
            "key": str(number),
            "title": titles[number],
            "prompts": board.evaluation.prompts,
            "score": formats.score_title(board.ranking, task.metric(board.ranking.metric)),
            "metric": task.metric(board.ranking.metric),
            "digits": board.has_digits,
            "lower": board.ranking.better == "lower",
            "usual": _usual(board),
            "rows": [_choice(row, about) for row in board.rows],
        }
        for number, board in enumerate(ordered)
    ]
    return {
        "evaluations": evaluations,
        "data": script_json(evaluations),
        "has_floor": any(board.has_digits and board.evaluation.floor.kind == "exact"
                         for board in boards),
    }  # fmt: skip


def _usual(board: Board) -> list[str]:
    """The two models that are compared first: the best of the track of most models."""
    rows = settings.best_by_model(settings.trained(board, board.tracks[0])) if board.tracks else []
    ids = [row.record.id for row in (*rows, *board.rows)]
    return list(dict.fromkeys(ids))[:2]


def _choice(row: Row, about: Descriptions) -> View:
    ranking = row.record.ranking
    track = f" · {row.track}" if row.track else ""
    return {
        "id": row.record.id,
        "name": f"{name_of(row, about)}{track} · {row.record.spec.dtype} · {row.origin}",
        "track": row.track_name,
        "trained": _budget(row),
        "score": with_minus(formats.score(row.score, ranking)),
        "interval": with_minus(formats.score_interval(row)),
        "median": with_minus(formats.number(row.statistics.median, ranking.scale)),
        "worst": with_minus(formats.number(row.worst, ranking.scale)),
        "notes": formats.notes(row),
        "seeds": row.seeds,
        "parameters": known_parameters(row.record),
        "budget": formats.budget(row.steps, row.batch),
    }


def _budget(row: Row) -> str:
    """How long a model was trained and with how many seeds; empty if it was not."""
    if not row.is_trained:
        return ""
    track = f"track {settings.track_in_words(row.track)}" if row.track else settings.OPEN_BUDGET
    return f"{track}, {counted(row.seeds, 'seed')}"


def comparison_script(row: Row) -> str:
    """data/ID.js: the facts of a row from which its difference to any other row follows.

    They are its mean and that of each prompt over its seeds, in base64 float32; the sign of values
    whose ratios count; the variance of the mean over prompts alone, and what its seeds add to it;
    and the mark of its differences.
    """
    by_prompt = row.ranked.mean(axis=0)
    prompts = len(by_prompt)
    # A row that is not finite has no variance; squares of large numbers are infinite.
    with np.errstate(invalid="ignore", over="ignore"):
        seeds = of_seeds(row.ranked)
        alone = float(by_prompt.var(ddof=1) / prompts) if prompts > 1 else 0.0
    content = {
        "mean": float(row.ranked.mean()),
        "sign": 0 if row.has_digits else common_sign(row.ranked),
        "alone": alone,
        "seeds": seeds.variance,
        "both": seeds.both,
        "squares": seeds.squares,
        "wide": seeds.wide(SIGNIFICANCE),
        "mark": formats.difference_mark([row.record]),
        "prompts": _packed(by_prompt),
    }
    return f'compared("{row.record.id}",{json.dumps(content, separators=(",", ":"))});\n'


def _packed(values: np.ndarray) -> str:
    with np.errstate(over="ignore"):  # numbers beyond float32 are infinite
        return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()
