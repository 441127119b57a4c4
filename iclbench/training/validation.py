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
    mode. Where the time limit does not allow all points, it leaves out the same share of those to
    come. `prepared_in` seconds were spent before; a point is expected to take `expected_seconds`
    until one was measured.
    """

    score: Score
    points: list[int]
    expected_seconds: float
    device: torch.device
    prepared_in: float = 0.0
    steps: list[int] = field(default_factory=list)
    #: For each point, the scores of each replica.
    scores: list[list[dict[str, float | None]]] = field(default_factory=list)
    #: For each point, the program's training time as its clock counts it.
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = Clock(self.device)
        self._module: nn.Module | None = None
        self._reached = 0

    @property
    def spent(self) -> float:
        """Seconds of all validation, with its preparation."""
        return self.prepared_in + self.clock.counted

    def after(self, step: int, trained: Clock, replicas: Replicas) -> None:
        """Evaluate after `step` completed steps, which took `trained`, if that is due."""
        reached = bisect_right(self.points, step)
        if reached == self._reached:
            return
        self._reached = reached
        later = len(self.points) - reached
        if self._is_affordable(later, trained.counted * self.points[-1] / step):
            with self.clock.running():
                self.scores.append(self._evaluated(replicas))
            self.steps.append(step)
            self.seconds.append(trained.counted)

    def _is_affordable(self, later: int, whole_training: float) -> bool:
        """Whether to evaluate a point with that many later ones, to keep the time limit."""
        mean = self.clock.counted / len(self.steps) if self.steps else self.expected_seconds
        left = max(SHARE * whole_training, LEAST_SECONDS) - self.spent
        points = int(min(left / mean if mean else math.inf, later + 1)) if left >= 0 else 0
        # Every n-th of the remaining points, counted from the last.
        return points > 0 and later % math.ceil((later + 1) / points) == 0

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
        times = {"clock": self.clock.state(), "prepared_in": self.prepared_in}
        return {**points, **times, "reached": self._reached}

    def load_state(self, values: dict[str, Any]) -> None:
        """Take up a state."""
        self.steps, self.scores = values["steps"], values["scores"]
        self.seconds, self._reached = values["seconds"], values["reached"]
        self.clock.load_state(values["clock"])
        self.prepared_in += values["prepared_in"]


def points_of(steps: int, chunk: int) -> list[int]:
    """Return about `POINTS` steps on a log scale, ends of chunks, the last one included."""
    chunks = math.ceil(steps / chunk)
    marks: set[int] = set()
    count = POINTS
    while len(marks) < min(POINTS, chunks):
        marks = {round(chunks ** (i / (count - 1))) for i in range(count)}
        count += 1  # the first marks fall on the same chunks
    return [min(steps, mark * chunk) for mark in sorted(marks)]
