"""The stages of a curriculum: which tasks the training prompts of a step are drawn from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ..api.recipe import Stage
from ..api.task import Task

Tasks = Sequence[Task[Any]]


class StagedTasks:
    """The task of each replica at every step: those of the stages in turn, then their own.

    It holds no state: everything follows from the step, so a training continues from any of them.
    """

    def __init__(self, tasks: Tasks, stages: Sequence[Stage]) -> None:
        self.ends = list(accumulate(stage.steps for stage in stages))
        self.by_stage: list[Tasks] = [
            *(_at_stage(tasks, stage) for stage in stages),
            tasks,
        ]

    def at(self, step: int) -> Tasks:
        """The tasks at a step, counted from 0."""
        return self.by_stage[bisect_right(self.ends, step)]

    def parts(self, step: int, count: int) -> Iterator[tuple[int, int]]:
        """Divide `count` steps from `step` on at the ends of stages: pairs (first step, steps)."""
        stop = step + count
        marks = [step, *(end for end in self.ends if step < end < stop), stop]
        for first, following in pairwise(marks):
            yield first, following - first


def _at_stage(tasks: Tasks, stage: Stage) -> Tasks:
    # Replicas of one task share its object, by which a GPU draws them together.
    staged = {id(task): task.at_stage(stage.task_args) for task in tasks}
    return [staged[id(task)] for task in tasks]
