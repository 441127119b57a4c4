"""The tracker `tensorboard`: event files, a folder per run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from iclbench import Config, Record, Tracker

from .packages import import_package

MODULE = "torch.utils.tensorboard"


class TensorBoardConfig(Config):
    """Where the event files go."""

    folder: str | None = Field(None, description="folder of the runs; default: OUT/tensorboard")


class TensorBoard(Tracker):
    """Writes FOLDER/TASK/MODEL-ID: losses, the settings as text, and the summary as hparams."""

    name = "tensorboard"
    Config = TensorBoardConfig

    def __init__(self, config: TensorBoardConfig, out: Path) -> None:
        super().__init__(config, out)
        self._writer: Any = None
        self._settings: dict[str, Any] = {}
        self._step = 0

    @classmethod
    def prepare(cls, config: TensorBoardConfig) -> None:
        """See `Tracker.prepare`."""
        import_package("tensorboard", cls.name)
        import_package(MODULE, cls.name)

    def start(self, spec: Any, settings: Mapping[str, Any]) -> None:
        """See `Tracker.start`."""
        root = Path(self.config.folder or self.out / "tensorboard").expanduser()
        folder = unused(root / spec.task / f"{spec.model}-{spec.id}")
        self._writer = import_package(MODULE, self.name).SummaryWriter(str(folder))
        self._settings = dict(settings)
        text = json.dumps(self._settings, indent=1)
        self._writer.add_text("settings", f"```json\n{text}\n```")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """See `Tracker.log`."""
        self._step = step
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def finish(self, record: Record, summary: Mapping[str, float]) -> None:
        """See `Tracker.finish`."""
        metrics = {f"result/{name}": value for name, value in summary.items()}
        # A run name of "." puts the hyperparameters into the run's own folder.
        self._writer.add_hparams(self._settings, metrics, run_name=".", global_step=self._step)
        self._writer.close()

    def fail(self, error: BaseException) -> None:
        """See `Tracker.fail`."""
        self._writer.close()


def unused(folder: Path) -> Path:
    """The folder, or with a number after its name if an earlier run has left files there."""
    number, candidate = 1, folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate
