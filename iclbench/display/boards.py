"""Boards as tables: what a terminal shows of them, and all of them as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.errors import UsageError
from ..api.ranking import Ranking
from ..api.spec import canonical_json
from ..leaderboards import formats
from ..leaderboards.board import Board
from ..leaderboards.bounds import bounds_mark
from ..leaderboards.escaping import markdown
from ..leaderboards.floor import Floor
from ..leaderboards.note_legend import note_legend
from ..leaderboards.page_parts import held_out_legend
from ..leaderboards.rank_legend import rank_legend, undecided
from ..leaderboards.row import Row
from ..leaderboards.sizes import known_parameters
from .latex import comment
from .records import bounds_legend
from .shifts import shift_matrix
from .table import AS_TABLE, Cell, Column, Output, Table, joined
from .terminal import print_text, write_table

#: Columns of every row in CSV and JSON, where all boards are one table.
_FACTS = (
    "board", "task", "task version", "task arguments", "dtype", "prompts", "evaluation digest",
    "metric", "statistic", "better", "score better",
)  # fmt: skip

Line = dict[str, Any]


def _columns(ranked: str, *, several_tracks: bool = False) -> tuple[Column, ...]:
    """The columns of a board; what ranks is headed by what it is.

    With several tracks, each of which has ranks of its own, all are told.
    """
    return (
        *(Column(name, extra=True) for name in _FACTS),
        Column("rank", right=True),
        Column("track", importance=0 if several_tracks else 3, heads=several_tracks),
        Column("model", fit="shorten"),
        Column("origin", fit="wrap", narrowest=14),
        Column("score", right=True, label=ranked),
        Column("95% interval", right=True, importance=1),
        Column("accuracy", right=True, importance=2),
        Column("1% worst", right=True, importance=2),
        Column("held out", right=True, importance=3),
        Column("seeds", right=True, importance=4),
        Column("median", right=True, importance=5),
        Column("parameters", right=True, importance=6),
        Column("time", right=True, importance=7),
        Column("over seeds", right=True, importance=8),
        Column("mean error", right=True, importance=9),
        Column("low", right=True, extra=True),
        Column("high", right=True, extra=True),
        Column("unranked", extra=True),
        Column("notes", extra=True),
        Column("held out differs", extra=True),
        Column("created", extra=True),
        Column("id", extra=True),
        Column("command", extra=True),
    )


def board_table(board: Board) -> Table:
    """The board's rows below its floor."""
    main, ranking = board.evaluation, board.ranking
    facts = {
        "board": board.title,
        "task": board.task,
        "task version": board.task_version,
        "task arguments": canonical_json(main.task_args),
        "dtype": board.dtype,
        "prompts": main.prompts,
        "evaluation digest": main.digest,
        "metric": ranking.metric,
        "statistic": ranking.statistic,
        "better": ranking.better,
        "score better": ranking.better_score,
    }
    lines = [] if board.floor is None else [_floor_line(board.floor, board.ranking)]
    lines += [_line(row) for row in board.rows]
    tracks = {row.track for row in board.rows if row.origin == "trained"}
    columns = _columns(formats.score_name(board.ranking), several_tracks=len(tracks) > 1)
    text = undecided(board.undecided)
    notes = (text,) if text else ()
    return Table(columns, [{**facts, **line} for line in lines], board.description, notes)


def require_columns(output: Output) -> None:
    """Raise UsageError for columns that no board has, as `print_boards` would later."""
    Table(_columns("digits"), []).arranged(_by_name(output, []))


def print_boards(
    boards: Sequence[Board], output: Output = AS_TABLE, *, commands: bool = False
) -> None:
    """Print every board with the columns and in the order asked for, and a legend.

    As CSV and JSON, all boards are one table. `commands` adds those that make the rows.
    Raises UsageError for an unknown column.
    """
    style = output.style
    if style in {"csv", "json"}:
        asked = _by_name(output, boards)
        names = (asked.columns or "all").split(",")
        if commands and names != ["all"] and "command" not in names:
            asked = asked._replace(columns=",".join([*names, "command"]))
        table = joined([board_table(board) for board in boards])
        write_table(table.arranged(asked) if boards else table, style)
        return
    # A column that no board has is refused before any is printed.
    tables = [board_table(board).arranged(_by_name(output, [board])) for board in boards]
    for board, table in zip(boards, tables, strict=True):
        print()
        write_table(table, style)
        matrix = shift_matrix(board)
        if matrix is not None:
            print()
            write_table(matrix.select("all") if output.columns == "all" else matrix, style)
        if commands:
            lines = "\n".join(f"    {record.command}" for record in board.records)
            print("\n" + (comment(lines) if style == "latex" else lines))
    if boards and style in {"table", "latex", "markdown"}:
        print()
        for text in legend(boards):
            _print_legend(text, style)


def _print_legend(text: str, style: str) -> None:
    if style == "table":
        print_text(text, "dim")
    else:
        print(comment(text) if style == "latex" else f"{markdown(text)}\n")


def _by_name(output: Output, boards: Sequence[Board]) -> Output:
    """The columns asked for with the name of what ranks, which tables head by what it is.

    Where digits rank, the mean has a column of its own. As one table, boards of both kinds have no
    column that is the mean of all: raises UsageError.
    """
    kinds = {board.has_digits for board in boards}
    columns = {"digits": "score", "mean": "mean error" if kinds == {True} else "score"}
    words = ",".join(filter(None, [output.columns, output.sort])).split(",")
    if len(kinds) > 1 and {"mean", "-mean"} & {word.strip() for word in words}:
        raise UsageError(
            "some of these boards rank by digits: instead of mean, give score or mean error"
        )

    def column(name: str) -> str:
        sign, bare = ("-", name[1:]) if name.startswith("-") else ("", name)
        return sign + columns.get(bare, bare)

    def named(asked: str | None) -> str | None:
        return asked and ",".join(column(name.strip()) for name in asked.split(","))

    return output._replace(columns=named(output.columns), sort=named(output.sort))


def legend(boards: Sequence[Board]) -> list[str]:
    """What the marks and columns in the tables of these boards mean."""
    rows = [row for board in boards for row in board.rows]
    marks = "".join(bounds_mark(row.bounds, row.seeds) + row.mark_above for row in rows)
    of_ranks = rank_legend([row for row in rows if row.is_trained])
    words = [f"{word}: {text}" for word, text in (*of_ranks, *note_legend(rows))]
    parts = [f"{formats.LEGEND}.", *([f"{' · '.join(words)}."] if words else [])]
    parts += [formats.DIGITS] if any(board.has_digits for board in boards) else []
    return [*parts, *held_out_legend(boards), *bounds_legend(marks)]


def _floor_line(floor: Floor, ranking: Ranking) -> Line:
    statistics, scale = floor.statistics, ranking.scale
    line = {
        "model": Cell(floor.label, floor.label, "italic"),
        "score": Cell(formats.score(floor.score, ranking), floor.score, "italic"),
        "1% worst": Cell(formats.number(floor.worst, scale), floor.worst),
        "median": Cell(formats.number(statistics.median, scale), statistics.median),
    }
    if ranking.has_digits:
        line["mean error"] = Cell(formats.number(statistics.mean), statistics.mean)
    return line


def _line(row: Row) -> Line:
    record, statistics = row.record, row.statistics
    ranking = record.ranking
    style = {"trained": "bold", "solver": "cyan", "constructed": "magenta"}.get(row.origin, "")
    line = {
        "rank": Cell(formats.rank(row), None if row.rank is None else str(row.rank)),
        "model": Cell(row.label_in_track, row.label, style),
        "origin": Cell(
            " ".join(filter(None, [formats.mark(row), _notes(row)])),
            row.origin,
            "green" if row.at_floor else "yellow" if row.chance or row.diverged else "",
        ),
        "score": Cell(formats.score(row.score, ranking), row.score, "bold"),
        "95% interval": Cell(formats.score_interval(row), formats.score_interval(row)),
        "low": _figures(row.bounds.low),
        "high": _figures(row.bounds.high),
        "1% worst": Cell(formats.number(row.worst, ranking.scale), row.worst),
        "held out": Cell(formats.held_out(row), row.held_out_score),
        "track": row.track_name,
        "seeds": Cell(formats.seeds(row), row.seeds),
        "median": Cell(formats.number(statistics.median, ranking.scale), statistics.median),
        "parameters": Cell(formats.parameters(record), known_parameters(record)),
        "time": Cell(formats.seconds(row.seconds), row.seconds),
        "over seeds": Cell(formats.spread(row), formats.spread(row)),
        "unranked": row.unranked,
        "notes": _notes(row),
        "held out differs": None if row.held_out is None else row.held_out_differs,
        "created": record.created,
        "id": record.id,
        "command": record.command,
    }
    if row.accuracy is not None:
        line["accuracy"] = Cell(formats.linear(row.accuracy), row.accuracy)
    if row.has_digits:  # elsewhere what ranks is the mean already
        line["mean error"] = Cell(formats.number(statistics.mean), statistics.mean)
    return line


def _notes(row: Row) -> str:
    return ", ".join(filter(None, ["at the floor" if row.at_floor else "", formats.notes(row)]))


def _figures(value: float | None) -> Cell:
    """A number with four figures, before the one that is not rounded."""
    return Cell("" if value is None else formats.linear(value), value)
