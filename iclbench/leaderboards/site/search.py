"""The index of a site: what its search finds, and what programs read of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

from ...api.spec import canonical_json
from ..board import Board
from ..build import by_task
from ..descriptions import Description, Descriptions
from ..row import Row
from ..sizes import known_parameters
from .figure import script_json
from .magnitudes import finite_value
from .model import by_model

#: Raised by one whenever the meaning of a field of index.json changes.
VERSION = 1


def index(boards: Sequence[Board], about: Descriptions) -> dict[str, Any]:
    """Tasks, models and boards with their rows, as index.json has them."""
    return {
        "version": VERSION,
        "iclbench": metadata.version("iclbench"),
        "tasks": [
            {**_described(about.task(name)), "group": about.task(name).group,
             "page": f"tasks/{name}.html", "csv": f"tasks/{name}.csv"}
            for name in sorted(by_task(boards))
        ],
        "models": [
            {**_described(about.model(name)), "page": f"models/{name}.html"}
            for name in sorted(by_model(boards))
        ],
        "boards": [_board(board) for board in boards],
    }  # fmt: skip


def _described(about: Description) -> dict[str, Any]:
    return {
        "name": about.name,
        "title": about.title,
        "text": about.text,
        "papers": [paper.url for _, paper in about.papers],
        "authors": [paper.short for _, paper in about.papers],
    }


def _board(board: Board) -> dict[str, Any]:
    floor, ranking = board.floor, board.ranking
    return {
        "task": board.task,
        "title": board.title,
        "version": board.task_version,
        "task_args": board.evaluation.task_args,
        "dtype": board.dtype,
        "prompts": board.evaluation.prompts,
        "evaluation": board.evaluation.digest,
        "metric": ranking.metric,
        "statistic": ranking.statistic,
        "better": ranking.better_score,
        "floor": None if floor is None else {"kind": floor.kind, "name": floor.label,
                                             "score": finite_value(floor.score)},
        "rows": [_row(row) for row in board.rows],
    }  # fmt: skip


def _row(row: Row) -> dict[str, Any]:
    record = row.record
    operations = record.operations.training if record.operations else None
    return {
        "id": record.id,
        "row": row.label,
        "model": record.spec.model,
        "origin": row.origin,
        "track": row.track or None,
        "rank": None if row.rank is None else [row.rank.first, row.rank.last],
        "score": finite_value(row.score),
        "low": finite_value(row.bounds.low),
        "high": finite_value(row.bounds.high),
        "chance": row.chance or None,
        "at_floor": row.at_floor,
        "seeds": row.seeds,
        "parameters": known_parameters(record),
        "operations": operations,
        "page": f"runs/{record.id}.html",
        "record": f"records/{row.file}",
    }


def as_json(content: dict[str, Any]) -> bytes:
    """index.json: one line, keys in order."""
    return canonical_json(content).encode() + b"\n"


def script(
    content: dict[str, Any],
    studies: Iterable[tuple[str, str]] = (),
    studied: Iterable[tuple[Description, str]] = (),
    pages: Iterable[tuple[str, str]] = (),
) -> str:
    """data/search.js: kind, text and page of everything that the search finds.

    `studies` are the questions and names of the studies, `studied` the tasks that only they have,
    each with a page; `pages` are others by title.
    """
    entries = [["page", "Add your model: submit results", "add.html"]]
    entries += [["page", title, page] for title, page in pages if page != "add.html"]
    entries += [["task", _text(t), t["page"]] for t in content["tasks"]]
    entries += [["task", _text(_described(task)), page] for task, page in studied]
    entries += [["study", f"{text} ({name})", f"studies/{name}.html"] for text, name in studies]
    entries += [["model", _text(m), m["page"]] for m in content["models"]]
    titles = {m["name"]: m["title"] for m in content["models"]}
    tasks = {t["name"]: t["title"] for t in content["tasks"]}
    for board in content["boards"]:
        for row in board["rows"]:
            track = f", {row['track']}" if row["track"] else ""
            title = titles[row["model"]]
            name = row["row"] if title == row["model"] else f"{title} ({row['row']})"
            has_track = f"track={row['track']}" in row["row"]
            told = "" if has_track else track
            on = board["title"].replace(board["task"], tasks[board["task"]], 1)
            text = f"{name} on {on}, {board['dtype']}, {row['origin']}{told}"
            entries.append(["run", f"{text} {row['id']}", row["page"]])
    return f"indexed({script_json(entries)});\n"


def _text(entry: dict[str, Any]) -> str:
    name, title = entry["name"], entry["title"]
    named = title if title == name else f"{title} ({name})"
    return ", ".join([named, *entry["authors"]])
