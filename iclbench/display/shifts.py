"""The matrix of a board's models and shifts as a table."""

from __future__ import annotations

from ..leaderboards import formats
from ..leaderboards.board import Board
from ..leaderboards.shift_table import Line, lost_legend, shift_lines, shifted_rows
from .table import Cell, Column, Table

#: The most characters of all labels that stand as heads of columns.
MOST_LABELS = 50


def shift_matrix(board: Board) -> Table | None:
    """A line for every shift and a column for every row that has any; None without shifts.

    Below it stand the reasons why a shift does not apply to a model.
    """
    lines, members = shift_lines(board), shifted_rows(board)
    if not lines:
        return None
    # Long labels don't fit beside each other.
    named = len(members) > 1 and sum(len(row.label) + 2 for row in members) > MOST_LABELS
    names = [f"model {i}" if named else row.label for i, row in enumerate(members, start=1)]
    models = [
        Column(row.record.id, right=True, importance=1 + i, label=name)
        for i, (row, name) in enumerate(zip(members, names, strict=True))
    ]
    legend = [f"{name}: {row.label}" for row, name in zip(members, names, strict=True) if named]
    last = len(members) + 1
    columns = (
        Column("shift"),
        Column("score", importance=last + 1),
        Column("floor", right=True, importance=last),
        *models,
    )
    rows, reasons = [], []
    for line in lines:
        # In a narrow terminal, the column of scores is left out.
        other = f" ({line.score})" if line.score != lines[0].score else ""
        shift = Cell(f"{line.shift}{other}", line.shift)
        cells = {"shift": shift, "score": line.score, "floor": _floor(line)}
        for row, cell, is_lost in zip(members, line.cells, line.lost, strict=True):
            cells[row.record.id] = _cell(line, cell, line.bound if is_lost else "")
            if isinstance(cell, str):
                reasons.append(f"{row.label} under {line.shift}: n/a, {cell}")
        rows.append(cells)
    notes = [*legend, *dict.fromkeys(reasons)]
    if any(any(line.lost) for line in lines):
        notes.append(lost_legend())
    return Table(columns, rows, title=f"{board.setting} · under shift", notes=tuple(notes))


def _floor(line: Line) -> Cell:
    cell = _cell(line, line.floor)
    is_target = line.floor_name == "target" and bool(cell.text)
    return cell._replace(text=f"{cell.text} (target)") if is_target else cell


def _cell(line: Line, value: float | str | None, bound: str = "") -> Cell:
    if isinstance(value, str):
        return Cell("n/a", None, "dim")
    if value is None:
        return Cell("", None)
    number = formats.digits(value) if line.score == "digits" else f"{value:.4g}"
    return Cell(f"{bound} {number}".strip(), value)
