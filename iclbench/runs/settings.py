"""Settings: how to run. None of them changes a result beyond the last bits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..training.gradients.choice import EngineName


@dataclass(frozen=True)
class Settings:
    """Where and how runs are made.

    `force` runs again where a record exists; `eval_batch` is the number of prompts that a model
    is evaluated on at once.
    """

    out: Path = Path("results")
    device: str = "auto"
    force: bool = False
    resume: bool = True
    checkpoint_seconds: float = 30.0
    eval_batch: int = 1024
    engine: EngineName = "auto"
