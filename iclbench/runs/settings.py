"""Settings: how to run. None of them changes a result beyond the last bits."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import get_args

import torch

from ..api.errors import UsageError, unknown
from ..training.gradients.choice import EngineName

#: The prompts that a model is evaluated on at once: on a CPU so few that a layer's activations stay
#: in the cache of a core (`python -m benchmarks.eval_batch`), on a GPU so many that it is busy.
ON_CPU, ON_GPU = 128, 1024


def default_eval_batch(device: torch.device) -> int:
    """How many prompts a model is evaluated on at once, if nobody asks for a number."""
    return ON_CPU if device.type == "cpu" else ON_GPU


@dataclass(frozen=True)
class Settings:
    """Where and how runs are made.

    `force` runs again where a record exists; `resume` continues an interrupted training, also one
    that was forced. `eval_batch` is the number of prompts that a model is evaluated on at once;
    None: see `default_eval_batch`. Raises UsageError for values that no run can use.
    """

    out: Path = Path("results")
    device: str = "auto"
    force: bool = False
    resume: bool = True
    checkpoint_seconds: float = 30.0
    eval_batch: int | None = None
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        at_once, seconds = self.eval_batch, self.checkpoint_seconds
        if at_once is not None and not (isinstance(at_once, Integral) and at_once >= 1):
            raise UsageError(f"eval_batch={at_once!r} is not a whole number from 1 on")
        if not (isinstance(seconds, Real) and seconds >= 0):  # NaN is not
            raise UsageError(f"checkpoint_seconds={seconds!r} is not a number from 0 on")
        if self.engine not in (engines := get_args(EngineName)):
            raise unknown("engine", self.engine, engines)
