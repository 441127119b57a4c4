"""The rate of a training: how many steps it takes in a second, measured on a trial of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .clock import Clock
from .random_streams import forked_generators

if TYPE_CHECKING:
    from .loop import Training


#: More steps than a trial takes.
ENDLESS = 10**9


def warm_up(device: torch.device) -> int:
    """The number of chunks that are not timed.

    The first compiles. On a GPU, a graph is captured at the second, or at the third where a chunk
    is one step.
    """
    return 1 if device.type == "cpu" else 3


def measure_rate(trial: Training, seconds: float) -> float:
    """Return the steps per second of core time (on a GPU, device time) of one replica.

    Times whole chunks, as training takes them, for about `seconds`, and one at least, without what
    the adaptive schedule measures between them. It uses up the trial: the training that follows is
    another object, with untouched parameters and random streams.
    """
    trial.adaptive = None
    clock = Clock(trial.device)
    with forked_generators(trial.device):
        for _ in range(warm_up(trial.device)):
            trial.advance()
        first = trial.step
        while trial.step == first or clock.counted < seconds:
            with clock.running():
                trial.advance()
    return len(trial.members) * (trial.step - first) / clock.counted
