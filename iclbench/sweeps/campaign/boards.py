"""The boards of a stage, and the models that run on each."""

from __future__ import annotations

from collections.abc import Iterator

from ...api.errors import unknown
from ...api.suite import Suite
from ...runs.suites import SuiteCell, find_suite, resolve_suite
from .files import CampaignStage


def suite_cells(stage: CampaignStage) -> Iterator[SuiteCell]:
    """The cells of a stage, board by board; those of the solvers that a board names come first."""
    assert stage.suite is not None
    suite = restricted(find_suite(stage.suite), stage.boards)
    changes = {n: {**stage.fields, "model_args": stage.model_args.get(n, {})} for n in stage.names}
    cells = resolve_suite(suite, stage.names, changes)
    for board in suite.boards:
        on_board = [cell for cell in cells if cell.board.name == board.name]
        yield from (cell for cell in on_board if cell.extra)
        for group in stage.groups:
            models = {cell.model: cell for cell in on_board if not cell.extra}
            candidates = [models[name] for name in group if name in models]
            able = [cell for cell in candidates if cell.unsupported is None]
            yield from (able or candidates)[:1]


def restricted(suite: Suite, boards: tuple[str, ...] | None) -> Suite:
    """The suite with these boards alone, once each; raises UsageError for an unknown one."""
    if boards is None:
        return suite
    boards = tuple(dict.fromkeys(boards))
    contents = dict(zip([board.name for board in suite.boards], suite.board, strict=True))
    for name in boards:
        if name not in contents:
            raise unknown(f"board of the suite {suite.name}", name, contents)
    return suite.model_copy(update={"board": tuple(contents[name] for name in boards)})
