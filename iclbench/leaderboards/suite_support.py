"""Which models can't do a board of a suite: a gap that more runs would not fill."""

from __future__ import annotations

from dataclasses import replace

from ..runs.suites import resolve_suite
from .suite_score import SuiteRow, SuiteTable

#: The origins that a model has where a suite runs it.
_RUN = frozenset({"trained", "solver"})


def with_support(table: SuiteTable) -> SuiteTable:
    """The table, with why models can't do the boards that they have no record on.

    Nothing runs: each model is asked with its default arguments, as the suite would run it.
    """
    models = sorted({_model_of(entry) for entry in table.entries if entry.origin in _RUN})
    reasons = {
        (cell.model, cell.board.name): cell.unsupported
        for cell in resolve_suite(table.suite, models, {})
        if cell.unsupported
    }
    entries = tuple(
        replace(entry, unsupported=_missing(entry, reasons)) if entry.origin in _RUN else entry
        for entry in table.entries
    )
    return replace(table, entries=entries)


def _model_of(entry: SuiteRow) -> str:
    return next(iter(entry.records.values())).spec.model


def _missing(entry: SuiteRow, reasons: dict[tuple[str, str], str]) -> dict[str, str]:
    model = _model_of(entry)
    return {
        board: reason
        for (name, board), reason in reasons.items()
        if name == model and board not in entry.records
    }
