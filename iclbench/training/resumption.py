"""Continuing a training that was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..api.errors import first_line
from ..console import report
from .checkpoints import Checkpoint, other_code, unusable
from .state import TrainingState

#: What a layout's difference means, by its field.
_DIFFERENCES = {
    "replicas": "is of another run",
    "device": "was made on another device",
    "steps": "is of another number of steps",
    "shapes": "is of another model",
}


@dataclass
class Resumption:
    """Where a training keeps its checkpoint, how often, and whether to continue from it.

    `code` is the version of each package and plugin that trains: a checkpoint of others is refused.
    """

    path: Path
    every_seconds: float = 30.0
    resume: bool = True
    code: Mapping[str, str] = field(default_factory=dict)
    _failing: bool = field(default=False, init=False)

    def save(self, training: TrainingState) -> bool:
        """Write a checkpoint; returns whether that was possible.

        A training goes on without one, for example on a full disk, or with an optimizer whose state
        JSON can't hold: the first of several failures is reported, and the checkpoint before stays.
        """
        try:
            tensors, values = training.state()
            values = {"layout": training.layout(), "code": self.code, **values}
            Checkpoint(tensors, values).save(self.path)
        except Exception as error:  # a package's optimizer may raise anything
            if not self._failing:
                reason = getattr(error, "strerror", None) or first_line(error)
                report(f"checkpoint {self.path} can't be written: {reason}; training goes on")
            self._failing = True
            return False
        self._failing = False
        return True

    def restore(self, training: TrainingState) -> None:
        """Continue from the checkpoint where there is one and `resume` is set.

        Raises CheckpointError for a checkpoint of another run or of other code.
        """
        if not (self.resume and self.path.exists()):
            return
        checkpoint = Checkpoint.load(self.path)
        code, layout = checkpoint.values["code"], checkpoint.values["layout"]
        if code != self.code:
            raise unusable(self.path, other_code(code, self.code))
        expected = training.layout()
        for name, reason in _DIFFERENCES.items():
            if layout[name] != expected[name]:
                raise unusable(self.path, reason)
        report(f"continuing from step {checkpoint.values['step']} of {self.path}")
        training.load_state(checkpoint.tensors, checkpoint.values)
