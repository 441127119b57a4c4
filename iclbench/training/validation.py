"""Validation: evaluations of all replicas at about 40 points of a training.

Nothing that is trained depends on it: it draws from no training stream and evaluates a copy.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .checkpoints import load_state
from .clock import Clock
from .random_streams import forked_generators
from .replicas import Replicas

#: Points of a whole training.
POINTS = 40
#: Validation takes at most this share of a training's time …
SHARE = 0.03
#: … or this many seconds, so that a training of seconds has points too.
LEAST_SECONDS = 0.5

#: Returns the scores of one replica's module, by name; None for what is not finite.
Score = Callable[[int, nn.Module], dict[str, float | None]]


@dataclass
class Validation:
    """The scores of the replicas after each of `steps`, and the time of training until then.

    Replicas are evaluated when one of `points` is reached, by `score` of their module in evaluation
    mode. A point that would exceed the time limit is left out; `expected_seconds` is what the first
    one may take.
    """

    score: Score
    points: list[int]
    expected_seconds: float
    device: torch.device
    steps: list[int] = field(default_factory=list)
    #: For each point, the scores of each replica.
    scores: list[list[dict[str, float | None]]] = field(default_factory=list)
    #: For each point, the program's training time as its clock counts it.
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = Clock(self.device)
        self._module: nn.Module | None = None
        self._reached = 0

    def after(self, step: int, trained: Clock, replicas: Replicas) -> None:
        """Evaluate after `step` completed steps, which took `trained`, if that is due."""
        reached = bisect_right(self.points, step)
        if reached == self._reached:
            return
        self._reached = reached
        last = reached == len(self.points)
        if self._is_affordable(trained.counted * self.points[-1] / step, last=last):
            with self.clock.running():
                self.scores.append(self._evaluated(replicas))
            self.steps.append(step)
            self.seconds.append(trained.counted)

    def _is_affordable(self, whole_training: float, *, last: bool) -> bool:
        """Whether another point fits the time limit, with time left for the last one."""
        mean = self.clock.counted / len(self.steps) if self.steps else self.expected_seconds
        needed = self.clock.counted + mean * (1 if last else 2)
        return needed <= max(SHARE * whole_training, LEAST_SECONDS)

    def _evaluated(self, replicas: Replicas) -> list[dict[str, float | None]]:
        if self._module is None:
            self._module = copy.deepcopy(replicas.template).eval()
        scores = []
        with forked_generators(self.device), torch.no_grad():
            for r in range(replicas.count):
                load_state(self._module, replicas.tensors(r, replicas.flat[r]), "a replica")
                scores.append(self.score(r, self._module))
        return scores

    def state(self) -> dict[str, Any]:
        """Return JSON values from which `load_state` continues."""
        points = {"steps": self.steps, "scores": self.scores, "seconds": self.seconds}
        return {**points, "clock": self.clock.state(), "reached": self._reached}

    def load_state(self, values: dict[str, Any]) -> None:
        """Take up a state."""
        self.steps, self.scores = values["steps"], values["scores"]
        self.seconds, self._reached = values["seconds"], values["reached"]
        self.clock.load_state(values["clock"])


def points_of(steps: int, chunk: int) -> list[int]:
    """Return about `POINTS` steps on a log scale, ends of chunks, the last one included."""
    chunks = math.ceil(steps / chunk)
    marks = {round(chunks ** (i / (POINTS - 1))) for i in range(POINTS)} if chunks else set()
    return [min(steps, mark * chunk) for mark in sorted(marks)]
