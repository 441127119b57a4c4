"""Continuing a training that was cut off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..api.errors import RecordError
from ..console import report
from .checkpoints import Checkpoint
from .state import TrainingState


@dataclass(frozen=True)
class Resumption:
    """Where a training keeps its checkpoint, how often, and whether to continue from it.

    `code` names the code that trains: a checkpoint of other code is refused.
    """

    path: Path
    every_seconds: float = 30.0
    resume: bool = True
    code: str = ""

    def save(self, training: TrainingState) -> None:
        """Write a checkpoint."""
        tensors, values = training.state()
        Checkpoint(tensors, {"layout": training.layout(self.code), **values}).save(self.path)

    def restore(self, training: TrainingState) -> None:
        """Continue from the checkpoint where there is one and `resume` is set.

        Raises RecordError for a checkpoint of another run or of other code.
        """
        if not (self.resume and self.path.exists()):
            return
        checkpoint = Checkpoint.load(self.path)
        layout, expected = checkpoint.values["layout"], training.layout(self.code)
        if layout != expected:
            by_code = layout["code"] != expected["code"]
            other = "was made by other code" if by_code else "is of another run"
            raise RecordError(f"checkpoint {self.path} {other}; --no-resume starts afresh")
        report(f"continuing from step {checkpoint.values['step']} of {self.path}")
        training.load_state(checkpoint.tensors, checkpoint.values)
