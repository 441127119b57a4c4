"""Watch: core seconds of a training, and its error on least squares from time to time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

from iclbench import Batch, load_task

DIM, EXAMPLES = 5, 20
#: Prompts that every training is evaluated on; their seed is that of no board.
PROMPTS, SEED = 1024, 29
#: Evaluations follow one another when the training has taken a tenth more time.
GROWTH = 1.1

#: Predicts w*ᵀx_query, (B, 1, 1), of a batch.
Predict = Callable[[Batch], Tensor]


class Watch:
    """Core seconds of a training, and its median squared error from time to time.

    `points` are (steps, core seconds, error). Time counts from construction, which should precede
    that of the model, and stops during an evaluation.
    """

    def __init__(self, limit: float, predict: Predict | None = None) -> None:
        self.limit, self.predict = limit, predict
        self.points: list[tuple[int, float, float]] = []
        self.steps = 0
        self.task = load_task("least-squares", dim=DIM, examples=EXAMPLES)
        (self.batch,) = self.task.evaluation_batches(PROMPTS, SEED, torch.float32)
        self._counted, self._since, self._due = 0.0, time.process_time(), 0.0

    @property
    def seconds(self) -> float:
        """Core seconds of the training so far."""
        return self._counted + time.process_time() - self._since

    def after(self, steps: int, *, last: bool = False) -> bool:
        """Evaluate if that is due; return whether there is time left."""
        self.steps = steps
        seconds = self.seconds
        over = seconds >= self.limit
        if over or last or seconds >= self._due:
            self._counted = seconds
            self.points.append((steps, seconds, self.error()))
            self._due, self._since = GROWTH * seconds, time.process_time()
        return not over

    def error(self) -> float:
        """The median over the prompts; infinite where a prediction isn't finite.

        NaN without `predict`, when only the speed is measured.
        """
        if self.predict is None:
            return math.nan
        with torch.no_grad():
            errors = self.task.metrics(self.predict(self.batch), self.batch)["squared_error"]
        median = float(np.median(np.asarray(errors)))
        return median if math.isfinite(median) else math.inf

    def bar(self, steps: Iterable[int]) -> _Bar:
        """Stand in for a progress bar: it ends with the time or the steps."""
        return _Bar(self, steps)


class _Bar:
    def __init__(self, watch: Watch, steps: Iterable[int]) -> None:
        self.watch, self.steps = watch, steps

    def __iter__(self) -> Iterator[int]:
        for step in self.steps:
            if not self.watch.after(step):
                return
            yield step
        self.watch.after(self.watch.steps + 1, last=True)

    def set_description(self, text: str) -> None:
        """Take the text that a terminal would show."""
