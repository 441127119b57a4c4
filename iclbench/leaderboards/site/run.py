"""What runs/ID.html shows: one record, how to reproduce it, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...api.record import Record
from ...api.statistics import Statistics
from ...runs.facts import claims
from ...runs.objects import Objects
from ...runs.store import read_values
from .. import formats
from ..board import Board
from ..bounds import mean_bounds
from ..descriptions import Descriptions
from ..floor import floor_label
from ..row import Row
from .answers import MOST as MOST_ENDINGS
from .answers import endings, first_answers
from .dotplot import references
from .figure import View, figures
from .home import floor_text
from .minus import with_minus
from .plots import record_curves
from .prompts import Prompts, answers_at, values_at, with_answers
from .run_parts import (
    bibtex,
    claims_in_words,
    files,
    held_out,
    held_out_in_short,
    proved,
    training_speed,
    validation_plots,
    wall_clock,
)
from .strip import peers, rank_of_how_many, strip
from .task_words import setting_in_words

#: What the page calls each reference of a board.
REFERENCES = {
    "attainable": "floor",
    "target": "target, which models can pass",
    "constructed": "best construction",
    "solver": "best solver",
    "asked": "best language model that was asked",
    "chance": "chance",
}
_QUANTILES = ("q01", "q05", "median", "q95", "q99", "max")


def run(row: Row, board: Board, folder: Path, base: str, prompts: Prompts) -> View:
    """A row's own page.

    `folder` holds its record, which is at `base` in the site with all its files.
    """
    record, ranking = row.record, row.record.ranking
    metrics = [_metric(name, statistics, row.seeds) for name, statistics in record.metrics.items()]
    metrics += [_metric(f"{floor_label(record)}: {n}", s) for n, s in record.floor.items()]
    seeds = [
        {
            "seed": seed.seed,
            "diverged": seed.diverged_at,
            "value": with_minus(formats.score(score, ranking)),
        }
        for seed, score in zip(record.seeds, row.seed_scores, strict=True)
        if seed.seed is not None
    ]
    spec = record.spec.model_dump(mode="json")
    return {
        "row": row,
        "record": record,
        "score": with_minus(formats.score(row.score, ranking)),
        "interval": with_minus(formats.score_interval(row)),
        "rank": rank_in_words(row, board),
        "held_out": held_out_in_short(row),
        "held_out_test": held_out(row) if row.held_out is not None else "",
        "worst": with_minus(formats.number(row.worst, ranking.scale)),
        "notes": formats.notes(row),
        "proved": proved(record),
        "claims": claims_in_words(claims(record, Objects(folder), row.stale)),
        "origin": formats.origin(row),
        "parameters": formats.parameters(record),
        "budget": formats.budget(row.steps, row.batch),
        "time": wall_clock(row),
        "speed": training_speed(record),
        "floor": with_minus(floor_text(board)),
        "floor_label": board.floor.label if board.floor else "floor",
        "metrics": metrics,
        "seeds": seeds,
        "spec": [(key, _text(value)) for key, value in spec.items() if value not in (None, {}, [])],
        "samples": _samples(record, folder / row.file, prompts),
        "said": first_answers(record, Objects(folder)),
        "endings": endings(record, Objects(folder))[:MOST_ENDINGS],
        "files": files(row, folder, base),
        "bibtex": bibtex(record),
        "tuning": json.dumps(record.tuning.document, indent=1) if record.tuning else "",
        "analyses": json.dumps(record.analyses, indent=1) if record.analyses else "",
    }


def described(row: Row, board: Board, about: Descriptions) -> View:
    """The parts of a row's page that need the words of its task and of the models on its board."""
    record, task = row.record, about.task(board.task)
    metric = task.metric(record.ranking.metric)
    setting = setting_in_words(board, task)
    return {
        "metric": metric,
        "task_title": task.title,
        "setting": ", ".join(filter(None, [setting, board.dtype])),
        "score_name": formats.score_title(record.ranking, metric),
        "strip": strip(row, board),
        "peers": len(peers(row, board)) - 1,
        "references": [
            (mark.kind, REFERENCES[mark.kind], _named(mark.name, about),
             with_minus(formats.score(mark.value, board.ranking)))
            for mark in references(board)
        ],
        "figures": figures([*record_curves(record, task), *validation_plots(record, metric)]),
    }  # fmt: skip


def _named(label: str, about: Descriptions) -> str:
    """A row's label, or a floor's, with the title of its model."""
    model, space, rest = label.partition(" ")
    return f"{about.model(model).title}{space}{rest}"


def rank_in_words(row: Row, board: Board) -> str:
    """The rank, of how many, and in which track; for a row without one, the reason."""
    rank = rank_of_how_many(row, board) or "none"
    reason = f": {row.unranked}" if row.rank is None and row.unranked else ""
    return f"{rank}{reason}{f', track {row.track}' if row.track else ''}"


def _samples(record: Record, path: Path, prompts: Prompts) -> View:
    """The first prompts of the evaluation set, with every metric of each seed there."""
    drawn = prompts.of(record)
    if isinstance(drawn, str):
        return {"prompts": [], "reason": drawn}
    single = {n: ref for n, ref in record.main.values.items() if len(ref.shape or ()) == 2}
    measured = values_at(record, read_values(path, single))
    seeds = ["" if seed.seed is None else f"seed {seed.seed}" for seed in record.seeds]
    views = []
    for i, prompt in enumerate(drawn):
        answers = answers_at(record, i, prompt["classes"])
        target = with_answers(prompt["numbers"], answers, seeds) if answers else prompt["target"]
        lines = [(line["metric"], line["prompts"][i]) for line in measured]
        views.append(prompt | {"target": target, "metrics": lines})
    return {"prompts": views, "seeds": seeds}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} = {json.dumps(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _metric(name: str, statistics: Statistics, seeds: int = 0) -> dict[str, str]:
    """The columns of a line of metrics: its name first."""
    median, digits = statistics.median, statistics.digits
    is_small = median is not None and 0 < abs(median) < 1e-2
    write = formats.number if is_small else formats.linear
    cells = {
        "mean digits": "" if digits is None else formats.digits(digits.mean),
        "mean": write(statistics.mean),
        "95% interval of the mean": formats.interval(mean_bounds(statistics), write, seeds),
        **{name: write(getattr(statistics, name)) for name in _QUANTILES},
    }
    return {"metric": name, **{title: with_minus(cell) for title, cell in cells.items()}}
