"""Costs: what training and tuning took, a line per record, and what so many digits took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from ..api.record import Record
from ..api.tuning import TuningCost
from ..console import counted
from .board import comparable
from .board_names import board_names
from .curves import cost_of_digits
from .labels import labels_of


@dataclass(frozen=True)
class CellCost:
    """What one trained record took: hours of core or device time, operations of all seeds.

    None stands for what was not measured or can't be counted. A tuning that several records use is
    that of the first; it may have run elsewhere than the training.
    """

    board: str
    model: str
    track: str
    seeds: int
    steps: int
    hours: float | None
    tuning_hours: float | None
    operations: float | None
    on_gpu: bool
    tuned_on_gpu: bool


def costs_of(records: Iterable[Record]) -> list[CellCost]:
    """The costs of the trained records, board by board in the order of the records."""
    seen: set[str] = set()
    return [_cost(board, label, record, seen) for board, label, record in _labelled(records)]


def _labelled(records: Iterable[Record]) -> Iterator[tuple[str, str, Record]]:
    """The trained records with their boards and labels, board by board."""
    boards = comparable([record for record in records if record.training is not None])
    names = board_names([members[0] for members in boards])
    for board, members in zip(names, boards, strict=True):
        for label, record in zip(labels_of(members), members, strict=True):
            yield board, label, record


def _cost(board: str, label: str, record: Record, seen: set[str]) -> CellCost:
    assert record.training is not None
    budget, operations, seeds = record.budget, record.operations, len(record.seeds)
    on_gpu = budget is not None and budget.device_seconds is not None
    seconds = None
    if budget is not None:
        seconds = budget.device_seconds if on_gpu else budget.core_seconds
    per_seed = None if operations is None else operations.training
    tuning: float | None = 0.0
    tuned_on_gpu = on_gpu
    if record.tuning is not None and record.tuning.sha256 not in seen:
        seen.add(record.tuning.sha256)
        tuning, tuned_on_gpu = _tuning_seconds(record.tuning.document, on_gpu)
    return CellCost(
        board=board,
        model=label,
        track=record.track or "",
        seeds=seeds,
        steps=record.training.steps,
        hours=None if seconds is None else seconds * seeds / 3600,
        tuning_hours=None if tuning is None else tuning / 3600,
        operations=None if per_seed is None else per_seed * seeds,
        on_gpu=on_gpu,
        tuned_on_gpu=tuned_on_gpu,
    )


def _tuning_seconds(document: dict[str, object], on_gpu: bool) -> tuple[float | None, bool]:
    """The time that all trials of a tuning took, and whether on a GPU.

    None if the cost is not recorded; the device is then that of the training.
    """
    try:
        cost = TuningCost.model_validate(document.get("cost"))
    except ValidationError:
        return None, on_gpu
    if cost.device_seconds is not None:
        return cost.device_seconds, True
    return cost.core_seconds, False


def sums_of(cells: Sequence[CellCost]) -> list[str]:
    """One line for each kind of hours, with their sums."""
    return [
        _sum(cells, on_gpu)
        for on_gpu in (False, True)
        if any(on_gpu in {cell.on_gpu, cell.tuned_on_gpu} for cell in cells)
    ]


@dataclass(frozen=True)
class DigitsCost:
    """What one seed's training cost until the validation reached so many mean digits.

    None stands for digits that were not reached, and for operations that can't be counted.
    """

    board: str
    model: str
    track: str
    digits: float
    steps: int | None
    seconds: float | None
    operations: float | None


def digits_of(records: Iterable[Record], wanted: Sequence[float]) -> list[DigitsCost]:
    """The cost of each number of digits; of records that rank by digits and were validated."""
    costs = []
    for board, label, record in _labelled(records):
        curve = record.validation_curve
        if curve is None or curve.statistic != "mean digits":
            continue
        for digits in wanted:
            cost = cost_of_digits(curve, digits)
            facts = (None,) * 3 if cost is None else (cost.steps, cost.seconds, cost.operations)
            costs.append(DigitsCost(board, label, record.track or "", digits, *facts))
    return costs


def _sum(all_cells: Sequence[CellCost], on_gpu: bool) -> str:
    kind = "device" if on_gpu else "core"
    cells = [cell for cell in all_cells if cell.on_gpu == on_gpu]
    trained = sum(cell.hours or 0.0 for cell in cells)
    tunings = [cell.tuning_hours for cell in all_cells if cell.tuned_on_gpu == on_gpu]
    tuned = sum(hours or 0.0 for hours in tunings)
    operations = sum(cell.operations or 0.0 for cell in cells)
    text = (
        f"{counted(len(cells), 'trained row')}: {trained + tuned:.3g} {kind} hours, of which "
        f"{trained:.3g} training and {tuned:.3g} tuning; {operations:.2e} operations of training"
    )
    unmeasured = sum(cell.hours is None for cell in cells)
    uncounted = sum(cell.operations is None for cell in cells)
    if None in tunings:
        text += f"; hours not measured: those of {counted(tunings.count(None), 'tuning')}"
    if unmeasured:
        text += f"; the hours of {unmeasured} were not measured"
    if uncounted:
        text += f"; the operations of {uncounted} can't be counted"
    return text
