"""FixedSteps: the steps of a training, which a budget sets once, in the file that keeps them."""

from __future__ import annotations

from pathlib import Path

from ..api.config import Config
from ..api.errors import CheckpointError
from ..api.record import Record


class FixedSteps(Config):
    """The steps of a training, and the rate that they follow from where a budget sets them."""

    steps: int
    rate: float | None = None
    asked: str | None = None
    code: dict[str, str] = {}

    @classmethod
    def of(cls, record: Record | None) -> FixedSteps | None:
        """Those of a record's training; None without a record, or without a budget."""
        if record is None or record.budget is None:
            return None
        budget = record.budget
        return cls(steps=budget.steps, rate=budget.rate, asked=budget.asked)


def steps_path(checkpoint: Path) -> Path:
    """The file that holds the steps of a budget, beside the checkpoint."""
    return checkpoint.with_suffix(".steps.json")


def known_steps(path: Path) -> FixedSteps:
    """The steps that an earlier training was given; raises CheckpointError for a damaged file."""
    try:
        return FixedSteps.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        raise CheckpointError(f"{path} can't be read; delete it to start afresh") from None
