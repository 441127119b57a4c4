"""What training costs and what it buys: budgets, operations and validation curves in a record."""

from __future__ import annotations

import itertools

from pydantic import Field, model_validator

from .config import Config
from .digits import Statistic
from .names import Label


class BudgetReport(Config):
    """What training was asked to cost, and what it cost.

    Times are one seed's: those of the program, divided by the models that it trained. Evaluating
    is not counted.
    """

    asked: Label | None = Field(None, description="the budget, such as 10m; None: steps were given")
    steps: int = Field(description="the steps that were fixed before training")
    rate: float | None = Field(
        None, description="steps per second of core time (device time), which fixed the steps"
    )
    core_seconds: float = Field(description="CPU time of the process, user and system")
    wall_seconds: float
    device_seconds: float | None = Field(None, description="time of the GPU; None on a CPU")


class Operations(Config):
    """Floating-point operations of one model; None where they can't be counted.

    Matrix products, convolutions, attention and Fourier transforms are counted, a multiplication
    and an addition as two; what is done element by element is not.
    """

    forward: float | None = Field(None, description="operations of a forward pass, per prompt")
    gradient: float | None = Field(
        None, description="operations of a forward and a backward pass in training, per prompt"
    )
    training: float | None = Field(
        None, description="operations of the training, per seed: a gradient for each prompt"
    )


#: The scores of each point of a validation curve.
SCORES = ("mean", "q05", "median", "q95")


class ValidationCurve(Config):
    """How good the models were while they were trained, on prompts that no board uses.

    The lists of scores hold one list per seed, with one value per point. Higher digits are better;
    for a mean, `Ranking.better` says which.
    """

    metric: str
    statistic: Statistic
    seed: int = Field(description="seed of the prompts, derived by name from the evaluation's")
    prompts: int = Field(description="number of prompts of each case")
    steps: list[int]
    seconds: list[float] = Field(
        description="core time (on a GPU, device time) of one seed's training, up to each point"
    )
    operations: list[float | None] = Field(
        description="operations of one seed's training, up to each point"
    )
    mean: list[list[float | None]] = Field(
        description="mean over prompts, of the digits or the metric"
    )
    q05: list[list[float | None]]
    median: list[list[float | None]]
    q95: list[list[float | None]]
    share: float = Field(description="time that validation took, divided by that of training")

    @model_validator(mode="after")
    def _check(self) -> ValidationCurve:
        scores = (self.mean, self.q05, self.median, self.q95)
        lengths = {len(self.seconds), len(self.operations)}
        lengths |= {len(column) for by_seed in scores for column in by_seed}
        if lengths != {len(self.steps)} or len({len(by_seed) for by_seed in scores}) != 1:
            raise ValueError("its columns differ in length")
        for quantiles in zip(*map(itertools.chain.from_iterable, scores[1:]), strict=True):
            if None not in quantiles and list(quantiles) != sorted(quantiles):
                raise ValueError("its quantiles are not in order")
        return self
