"""What compare/TASK.html shows: the choices, and the bootstrap that its script compares."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import numpy as np

from .. import formats
from ..board import Board
from ..ranking import comparison_scale
from ..row import Row
from .figure import View, script_json
from .task import by_evaluation, evaluation_title


def choices(boards: Sequence[Board]) -> View:
    """The evaluation sets of a task, and the rows of each that can be compared."""
    evaluations = [
        {
            "key": key,
            "title": evaluation_title(group[0]),
            "prompts": group[0].evaluation.prompts,
            "metric": group[0].ranking.metric,
            "log": group[0].ranking.scale == "log",
            "lower": group[0].ranking.better == "lower",
            "rows": [_choice(row) for board in group for row in board.rows],
        }
        for key, group in by_evaluation(boards).items()
    ]
    return {"evaluations": evaluations, "data": script_json(evaluations)}


def _choice(row: Row) -> View:
    statistics, ranking = row.statistics, row.record.ranking
    return {
        "id": row.record.id,
        "name": f"{row.label} · {row.record.spec.dtype} · {row.origin}",
        "value": formats.score(row, ranking),
        "median": formats.number(statistics.median, ranking.scale),
        "interval": formats.interval(statistics.low, statistics.high, ranking.scale),
        "seeds": row.seeds,
        "parameters": row.parameters,
        "budget": formats.budget(row.steps, row.batch),
    }


def bootstrap_script(row: Row) -> str:
    """data/ID.js: a row's bootstrap, and the mean over seeds for each prompt, in base64 float32."""
    resampled = row.resampled
    by_prompt = comparison_scale(row.values, row.record.ranking.scale == "log").mean(axis=0)
    content = {
        "mean": resampled.mean,
        "first": _packed(resampled.first),
        "second": _packed(resampled.second) if resampled.second is not resampled.first else None,
        "prompts": _packed(by_prompt),
    }
    return f'compared("{row.record.id}",{json.dumps(content, separators=(",", ":"))});\n'


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()
