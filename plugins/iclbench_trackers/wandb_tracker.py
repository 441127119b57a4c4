"""The tracker `wandb`: runs of Weights & Biases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from iclbench import Config, Record, Tracker, UsageError

from .packages import import_package


class WandbConfig(Config):
    """Where the runs go. The key comes from wandb's own login or WANDB_API_KEY alone."""

    project: str = Field("iclbench", description="name of the project in W&B")
    entity: str | None = Field(None, description="user or team in W&B; default: wandb's own")
    mode: Literal["online", "offline"] | None = Field(
        None, description="offline: write to OUT/wandb and send nothing; default: WANDB_MODE"
    )


class WeightsAndBiases(Tracker):
    """One run of wandb per run, grouped by task. Code, output and git state are not sent."""

    name = "wandb"
    Config = WandbConfig

    def __init__(self, config: WandbConfig, out: Path) -> None:
        super().__init__(config, out)
        self._run: Any = None

    @classmethod
    def prepare(cls, config: WandbConfig) -> None:
        """See `Tracker.prepare`."""
        wandb = import_package("wandb", cls.name)
        mode = config.mode or os.environ.get("WANDB_MODE", "online")
        if mode == "online":
            # Here, not at the first run: wandb may ask for a login, or refuse one.
            try:
                wandb.login()
            except wandb.errors.Error as error:
                raise UsageError(f"tracker wandb: {error} Or give mode=offline.") from None

    def start(self, spec: Any, settings: Mapping[str, Any]) -> None:
        """See `Tracker.start`."""
        wandb = import_package("wandb", self.name)
        self.out.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=self.config.project,
            entity=self.config.entity,
            mode=self.config.mode,
            dir=str(self.out),
            name=f"{spec.model}-{spec.id}",
            group=spec.task,
            config=dict(settings),
            # Several runs may be trained as one program.
            reinit="create_new",
            settings=wandb.Settings(
                console="off", silent=True, disable_code=True, disable_git=True, save_code=False,
                x_disable_machine_info=True, x_disable_meta=True, x_disable_stats=True,
            ),
        )  # fmt: skip

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """See `Tracker.log`."""
        self._run.log(dict(values), step=step)

    def finish(self, record: Record, summary: Mapping[str, float]) -> None:
        """See `Tracker.finish`."""
        self._run.summary.update({f"result/{name}": value for name, value in summary.items()})
        self._run.summary.update({"record": record.digest})
        self._run.finish()

    def fail(self, error: BaseException) -> None:
        """See `Tracker.fail`."""
        self._run.finish(exit_code=1)
