"""A task that tells its answers as stories, and graders of their length."""

from __future__ import annotations

import json
import math

import torch
from pydantic import Field

from iclbench import (
    Completion,
    Config,
    GradedTask,
    Grader,
    run,
)
from iclbench.api.record import GraderReport
from iclbench.api.scoring import Primary
from iclbench_least_squares.fixed import LeastSquares


class Storyteller(LeastSquares, GradedTask):
    """Least squares that tells its first four answers as endings."""

    name = "storyteller"

    def completions(self, models, prompts):
        return 4 * models

    def evaluate(self, model, batch, context):
        metrics = super().evaluate(model, batch, context)
        if context.grader is not None:
            answers = model(batch.prompt)[:4, 0, 0].tolist()
            stories = [Completion(f"Story {i}.", f"It was {y:.3f}.") for i, y in enumerate(answers)]
            for part in (stories[:1], stories[1:]):
                for name, values in context.grader.grade(part, context.folder).items():
                    old = metrics.get(f"grade_{name}", torch.zeros(0, dtype=torch.float64))
                    new = torch.tensor(values, dtype=torch.float64)
                    metrics[f"grade_{name}"] = torch.cat([old, new])
        return metrics


class Ranked(Storyteller):
    """The same, ranked by a grade."""

    name = "ranked"

    @property
    def primary(self):
        return Primary("grade_length", better="higher")


class Forgetful(LeastSquares, GradedTask):
    """A graded task that gives its grader nothing."""

    name = "forgetful"


class LengthConfig(Config):
    factor: float = Field(1.0, description="of each length")
    speed: int = Field(1, description="changes no score")
    fail: int | None = Field(None, description="the story that fails")


class Length(Grader):
    name = "length"
    Config = LengthConfig
    operational = frozenset({"speed"})
    asked = 0

    def grade(self, completions, folder):
        assert folder is None or folder.name == "graders"
        type(self).asked += len(completions)
        failing = f"Story {self.config.fail}."
        return {
            "length": [
                math.nan if c.beginning == failing else self.config.factor * len(c.ending)
                for c in completions
            ]
        }

    def report(self):
        return GraderReport(name=self.name, model="a ruler")


class Paid(Length):
    name = "paid"
    paid = True

    def raw(self, completion):
        return {"characters": len(completion.ending)}

    def read(self, raw):
        return {"length": float(raw["characters"])}


TINY = {
    "task_args": {"dim": 2, "examples": 4},
    "eval_prompts": 16,
    "seeds": 2,
    "recipe": "smoke",
}


def tell(out, model="averaging", task="storyteller", grader="length", **more):
    return run(model=model, task=task, grader=grader, out=out, **{**TINY, **more})


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
