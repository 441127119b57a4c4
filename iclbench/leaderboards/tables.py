"""Tables as text: a board's, and a study's own."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from safetensors import safe_open
from tabulate import tabulate

from ..api.record import Ranking, Record
from ..api.statistics import Statistics
from ..runs.store import RecordStore
from ..sweeps.table import StudyTable
from . import formats
from .board import Board
from .escaping import markdown
from .labels import labels_of
from .row import Floor, Row, floor_label, has_digits

#: The styles that are Markdown, in which texts of records are escaped.
MARKDOWN = frozenset({"github", "pipe"})
#: The columns that a table always has, and further ones in the order of their importance.
_ALWAYS = ("rank", "model", "origin", "score", "95% interval", "1% worst")
_FURTHER = (
    "held out",
    "track",
    "seeds",
    "median",
    "parameters",
    "time",
    "over seeds",
    "mean error",
)
_LEFT = frozenset({"model", "origin", "track"})
#: The fewest characters of a model's name that a narrow table shows.
_SHORTEST = 8


def render(board: Board, style: str = "simple", width: int | None = None) -> str:
    """The board as text, in one of tabulate's styles; the floor comes first.

    At most `width` characters wide, if possible: less important columns are left out, and then
    names are cut.
    """
    lines = [] if board.floor is None else [_floor_line(board.floor, board.ranking)]
    lines += [_line(row) for row in board.rows]
    filled = [name for name in _FURTHER if any(line[name] for line in lines)]
    columns = [*_ALWAYS, *filled]
    table = _table(board, lines, columns, style)
    while width is not None and _width(table) > width and len(columns) > len(_ALWAYS):
        columns.pop()
        table = _table(board, lines, columns, style)
    if width is not None and _width(table) > width:
        longest = max(len(line["model"]) for line in lines)
        most = max(_SHORTEST, longest - (_width(table) - width))
        cut = [{**line, "model": _shortened(line["model"], most)} for line in lines]
        table = _table(board, cut, columns, style)
    about = markdown(board.description) if style in MARKDOWN else board.description
    return f"{_wrapped(about, width)}\n\n{table}"


def legend(boards: Sequence[Board], width: int | None = None) -> str:
    """What the marks and columns in the tables of these boards mean."""
    bounds = [row.bounds.kind for board in boards for row in board.rows]
    parts = [f"{formats.LEGEND}."]
    parts += [formats.DIGITS] if any(board.has_digits for board in boards) else []
    is_held_out = any(row.held_out for board in boards for row in board.rows)
    parts += [formats.HELD_OUT] if is_held_out else []
    parts += [] if set(bounds) <= {None, "seeds and prompts"} else [f"{formats.BOUNDS_LEGEND}."]
    return "\n".join(_wrapped(text, width) for text in parts)


def _wrapped(text: str, width: int | None) -> str:
    return text if width is None else textwrap.fill(text, width)


def _table(
    board: Board, lines: Sequence[dict[str, str]], columns: Sequence[str], style: str
) -> str:
    """The named columns of the lines; the score is headed by what it is."""
    score = formats.score_name(board.ranking)
    write = markdown if style in MARKDOWN else str
    return tabulate(
        [[write(line[name]) for name in columns] for line in lines],
        headers=[score if name == "score" else name for name in columns],
        tablefmt=style,
        disable_numparse=True,
        colalign=["left" if name in _LEFT else "right" for name in columns],
    )


def _width(table: str) -> int:
    return max(len(line) for line in table.splitlines())


def _shortened(text: str, most: int) -> str:
    """At most so many characters; the end, which tells rows apart, keeps more than the start."""
    if len(text) <= most:
        return text
    start = (most - 1) // 3
    return f"{text[:start]}…{text[start + 1 - most :]}"


def _floor_line(floor: Floor, ranking: Ranking) -> dict[str, str]:
    return {
        **dict.fromkeys([*_ALWAYS, *_FURTHER], ""),
        "model": floor.label,
        "score": formats.score(floor.score, ranking),
        "1% worst": formats.number(floor.worst, ranking.scale),
        "median": formats.number(floor.statistics.median, ranking.scale),
        "mean error": formats.number(floor.statistics.mean) if has_digits(ranking) else "",
    }


def _notes(row: Row) -> str:
    return ", ".join(filter(None, ["at the floor" if row.at_floor else "", formats.notes(row)]))


def _line(row: Row) -> dict[str, str]:
    ranking, statistics = row.record.ranking, row.statistics
    return {
        "rank": formats.rank(row),
        "model": row.label,
        "origin": " ".join(filter(None, [formats.mark(row), _notes(row)])),
        "score": formats.score(row.score, ranking),
        "95% interval": formats.score_interval(row),
        "1% worst": formats.number(row.worst, ranking.scale),
        "held out": formats.held_out(row),
        "track": row.track,
        "seeds": str(row.seeds or ""),
        "median": formats.number(statistics.median, ranking.scale),
        "parameters": f"{row.record.parameters:,}",
        "time": formats.seconds(row.seconds),
        "over seeds": formats.spread(row),
        # What ranks is the mean already, except where digits rank.
        "mean error": formats.number(statistics.mean) if row.has_digits else "",
    }


def render_study(table: StudyTable, records: Sequence[Record], store: RecordStore) -> str:
    """The study's table as text: one row per record, below the floor of the first.

    Means are shown with half the width of their 95% interval, or with both bounds where it is
    unreliable. Raises RecordError if a record's weights, whose sizes are counted, are missing or
    were changed.
    """
    if not records:
        return ""
    known = dict.fromkeys(n for r in records for n in [*r.floor, *r.metrics])
    names = list(dict.fromkeys(n for p in table.metrics for n in known if fnmatchcase(n, p)))
    rows = [
        {
            "model": markdown(label),
            **_study_cells(table, names, record.metrics),
            **_parameter_counts(table, record, store),
        }
        for label, record in zip(labels_of(records), records, strict=True)
    ]
    first = records[0]
    if any(name in first.floor for name in names):
        cells = _study_cells(table, names, first.floor)
        rows.insert(0, {"model": floor_label(first), **cells, **dict.fromkeys(table.counts, "")})
    columns = ("left", *["right"] * (len(rows[0]) - 1))
    return tabulate(
        rows, headers="keys", tablefmt="github", disable_numparse=True, colalign=columns
    )


def _study_cells(
    table: StudyTable, names: Iterable[str], metrics: dict[str, Statistics]
) -> dict[str, str]:
    return {name: _study_cell(table, metrics.get(name)) for name in names}


def _study_cell(table: StudyTable, statistics: Statistics | None) -> str:
    value = None if statistics is None else getattr(statistics, table.statistic)
    if statistics is None or value is None:
        return ""
    if table.statistic == "median" or statistics.low is None or statistics.high is None:
        return f"{value:.4g}"
    if not statistics.reliable:
        return f"{value:.4g} [{statistics.low:.3g}, {statistics.high:.3g}]"
    half = (statistics.high - statistics.low) / 2
    # Two figures of the half width, and the mean to the same place.
    places = max(0, 1 - math.floor(math.log10(half))) if half > 0 else 3
    return f"{value:.{places}f} ± {half:.{places}f}"


def _parameter_counts(table: StudyTable, record: Record, store: RecordStore) -> dict[str, str]:
    """The sizes of the parameters in the record's weights; empty cells for a record without."""
    if not table.counts or record.weights is None:
        return dict.fromkeys(table.counts, "")
    store.objects.read(record.weights)  # refuses a changed file
    sizes: dict[str, int] = {}
    with safe_open(store.objects.path(record.weights), framework="np") as file:
        for key in file.keys():  # noqa: SIM118
            sizes[key.partition("/")[2]] = math.prod(file.get_slice(key).get_shape())
    return {
        column: f"{sum(n for name, n in sizes.items() if _matches(name, patterns)):,}"
        for column, patterns in table.counts.items()
    }


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
