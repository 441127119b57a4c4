"""Cells: what a campaign consists of, and what is left of each, as folders of records tell."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...api.budget import Budget
from ...api.errors import UsageError
from ...api.suite import SuiteBoard
from ...console import Reporter, counted
from ...console import report as report_now
from ...runs.settings import Settings
from ...runs.suites import find_suite
from .boards import restricted, suite_cells
from .cell import CampaignCell
from .files import Campaign, CampaignStage
from .progress import Progress
from .work import TrainRun, TrainSeed


def cells_of(
    campaign: Campaign, settings: Settings, report: Reporter = report_now
) -> list[CampaignCell]:
    """All cells in the order of the stages, each once, with what is left of each.

    `report` gets a line for each file among the tunings that is none.
    """
    progress = Progress(campaign, settings, report)
    cells: dict[str, CampaignCell] = {}
    # A stage's winner may be a model that an earlier stage has too.
    repeated: list[CampaignCell] = []
    for stage in campaign.stage:
        of_stage = list(_cells_of_stage(stage, progress, repeated))
        repeated += of_stage
        for cell in of_stage:
            key = cell.name
            if cell.state == "unsupported":
                key = f"{stage.suite}: {cell.model} on {cell.board}: {cell.reason}"
            elif cell.plan is not None and not isinstance(cell.work, TrainSeed):
                # What a search will choose may be what an earlier one has chosen.
                searched = isinstance(cell.work, TrainRun) and cell.work.search is not None
                key = f"{'searched ' * searched}{cell.plan.spec.id}"
            first = cells.setdefault(key, cell)
            cells[key] = progress.under_shifts_of(first, cell)
    return list(cells.values())


def _cells_of_stage(
    stage: CampaignStage, progress: Progress, earlier: list[CampaignCell]
) -> Iterator[CampaignCell]:
    if stage.suite is None:
        yield from (progress.of_sweep(stage, entry) for entry in stage.sweep)
        return
    if stage.winner_of is None:
        yield from (progress.of(stage, board_cell) for board_cell in suite_cells(stage))
        return
    for board in restricted(find_suite(stage.suite), stage.boards).boards:
        on_board = [c for c in earlier if (c.stage, c.board) == (stage.winner_of, board.name)]
        yield from _winner(stage, board, on_board, progress)


def _winner(
    stage: CampaignStage, board: SuiteBoard, on_board: list[CampaignCell], progress: Progress
) -> Iterator[CampaignCell]:
    """The model of these cells with the best tuning, with that tuning, once all are tuned."""
    winner = partial(CampaignCell, stage.name, board.name, f"the best of {stage.winner_of}")
    plans = [cell.plan for cell in on_board if cell.plan and cell.plan.recipe is not None]
    # A model whose plan can't be made might win, but none of the solvers that the board names.
    named = next(s.names for s in progress.campaign.stage if s.name == stage.winner_of)
    broken = [c for c in on_board if c.state == "failed" and not c.plan and c.model in named]
    if not plans and not broken:
        yield winner("failed", reason=f"no model of {stage.winner_of} can be trained on it")
        return
    try:
        tunings = [tuning for plan in plans if (tuning := progress.tuning(plan)) is not None]
        request = board.request("any", **stage.fields)
    except UsageError as error:
        yield winner("failed", reason=str(error))
        return
    if broken or len(tunings) < len(plans):
        budget = request.budget and Budget.parse(request.budget).times(len(request.seeds))
        missing = counted(len(plans) - len(tunings), "model")
        reason = f"{missing} of {stage.winner_of} not tuned"
        if broken:
            reason = f"{broken[0].model} can't be tuned: {broken[0].reason}"
        seconds = budget.seconds if budget else 0.0
        yield winner("waiting", reason=reason, seconds_left=seconds)
        return
    best = max(tunings, key=lambda tuning: tuning.ranking.goodness(tuning.best.score))
    alone = stage.model_copy(update={"models": (best.model,), "boards": (board.name,)})
    for board_cell in suite_cells(alone):
        if not board_cell.extra:
            cell = progress.of(stage, board_cell, best)
            adds_shifts = isinstance(cell.work, TrainRun) and cell.work.adds_shifts
            is_apart = stage.apart and cell.state == "to run" and not adds_shifts
            yield from progress.seeds_apart(cell) if is_apart else [cell]
