"""A suite's scores as text: the mean of every model, and each board."""

from __future__ import annotations

from collections.abc import Mapping

from tabulate import tabulate

from ..api.suite import SuiteBoard
from .suite_score import Score, SuiteTable, ranked_value


def render_suite(table: SuiteTable, reasons: Mapping[tuple[str, str], str] | None = None) -> str:
    """The table as text: each entry's mean, then every board.

    `reasons` says why a model has no row on a board, by board and model.
    """
    suite, count = table.suite, len(table.suite.boards)
    overall = [
        {
            "model": entry.label,
            "origin": entry.origin,
            "track": entry.track,
            "tuned": entry.tuned,
            "parameters": _range(entry.parameters),
            "boards": f"{sum(s is not None for s in entry.scores.values())}/{count}",
            "score": _score(entry.mean),
        }
        for entry in table.entries
    ]
    parts = [f"suite {suite.name} v{suite.version}", _table(overall)]
    for board in suite.boards:
        scale = table.scales[board.name]
        ends = f"0: {board.chance} ({_number(scale.chance)}), " \
            f"1: {scale.reference_name} ({_number(scale.reference)})"  # fmt: skip
        parts += [f"{board.name} · {ends}", _table(_board_lines(table, board))]
        absent = [f"{model}: {why}" for (name, model), why in (reasons or {}).items()
                  if name == board.name]  # fmt: skip
        parts += ["\n".join(absent)] if absent else []
    return "\n\n".join(part for part in parts if part)


def _board_lines(table: SuiteTable, board: SuiteBoard) -> list[dict[str, str]]:
    lines = []
    for entry in table.entries:
        record = entry.records.get(board.name)
        if record is not None:
            value = f"{record.ranking.statistic} {_number(ranked_value(record)[0])}"
            score = _score(entry.scores[board.name]) or "unknown"
            lines.append({"model": entry.label, "score": score, "ranked by": value,
                          "parameters": f"{record.parameters:,}"})  # fmt: skip
    return lines


def _table(lines: list[dict[str, str]]) -> str:
    return tabulate(lines, headers="keys", tablefmt="github", disable_numparse=True)


def _score(score: Score | None) -> str:
    """The score with its interval; empty for None."""
    if score is None:
        return ""
    if score.low is None or score.high is None:
        return _fixed(score.value)
    return f"{_fixed(score.value)} ({_fixed(score.low)} … {_fixed(score.high)})"


def _fixed(value: float) -> str:
    # Adding 0 turns a rounded −0 into 0.
    return f"{round(value, 3) + 0.0:.3f}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4g}"


def _range(counts: tuple[int, int]) -> str:
    low, high = counts
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
