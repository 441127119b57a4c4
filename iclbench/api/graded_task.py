"""GradedTask: a task whose models write text that a grader can score."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .evaluation import EvaluationContext
from .grader import Completion
from .task import ConfigT, Task


class GradedTask(Task[ConfigT]):
    """A task that gives completions to the context's grader, if there is one.

    `evaluate` adds `grades` of what the model wrote to the metrics, and `floor` those of the
    reference texts where these are graded too.
    """

    def completions(self, models: int, prompts: int) -> int:
        """The number of completions that a grader gets in a run, which its cost is estimated by.

        Override it where fewer prompts are graded, or where the floor's texts are graded too.
        """
        return models * prompts

    def grades(
        self, completions: Sequence[Completion], context: EvaluationContext
    ) -> dict[str, Tensor]:
        """The grader's scores, grade_NAME (n,), NaN where it failed; {} without a grader."""
        if context.grader is None or not completions:
            return {}
        scores = context.grader.grade(list(completions), context.folder)
        return {f"grade_{n}": torch.tensor(v, dtype=torch.float64) for n, v in scores.items()}
