"""campaign: suites and sweeps in order from Python, with their progress shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..files import path_of
from ..runs.settings import Settings
from ..sweeps.campaign.files import read_campaign
from ..sweeps.campaign.run import run_campaign
from ..training.gradients.choice import EngineName
from .progress import progress_of_jobs
from .run import is_shown


def campaign(
    file: str | Path,
    *,
    out: str | Path = "leaderboards/campaign",
    stage: str | None = None,
    hours: float | None = None,
    device: str = "auto",
    executor: str = "local",
    executor_args: Mapping[str, Any] | None = None,
    workers: int = 1,
    engine: EngineName = "auto",
    progress: bool | None = None,
) -> list[str]:
    """Run what is left of the campaign in a TOML file; returns why cells failed, a line each.

    The arguments are those of `iclbench campaign`: `stage` runs it and those that it needs, `hours`
    is a limit of time. The same call continues an interrupted campaign. Records go to the
    folder `out`.

    Raises UsageError for an invalid file or a device that can't be used, and Interrupted after a
    signal.
    """
    content = read_campaign(path_of(file))
    content = content if stage is None else content.only(stage)
    settings = Settings(out=path_of(out), device=device, engine=engine)
    how: dict[str, Any] = {
        "workers": workers,
        "hours": hours,
        "executor": executor,
        "executor_args": executor_args,
    }
    if not is_shown(progress):
        return run_campaign(content, settings, **how)
    with progress_of_jobs("planning the campaign") as display:
        return run_campaign(content, settings, **how, report=display.line, listener=display)
