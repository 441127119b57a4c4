"""Recipe: how a model is trained."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from .config import Config, added_later

Schedule = Literal["constant", "step", "cosine", "adaptive"]


class Stage(Config):
    """A part of a training, in which the training prompts have other arguments of the task."""

    steps: int = Field(ge=1, description="number of updates in the stage")
    task_args: dict[str, Any] = Field(
        description="arguments of the task for training in this stage, among its `replica_args`"
    )


class Recipe(Config):
    """Optimizer, learning rate, schedule, steps and batch size."""

    steps: int = Field(ge=0, description="number of updates")
    batch: int = Field(ge=1, description="prompts per update")
    optimizer: str = Field(
        "adam",
        description="adam, adamw, sgd, soap, gauss-newton or lbfgs; "
        "a class of torch.optim; or package.Class",
    )
    optimizer_args: dict[str, Any] = Field({}, description="arguments of the optimizer")
    learning_rate: float = Field(
        1e-3, ge=0, description="learning rate, before the schedule's factor"
    )
    schedule: Schedule = Field(
        "constant", description="how the learning rate changes from step to step"
    )
    warmup: int = Field(0, ge=0, description="number of steps of linear warm-up")
    decay_every: int = Field(
        10_000,
        ge=1,
        description="step and adaptive schedules: steps between changes of the learning rate",
    )
    decay: float = Field(
        0.9, gt=0, le=1, description="step and adaptive schedules: factor of each change"
    )
    measure_every: int = Field(
        1000,
        ge=1,
        description="adaptive schedule: steps between measurements of the cosine between gradients",
    )
    measure_batches: int = Field(
        8, ge=2, description="adaptive schedule: number of minibatch gradients per measurement"
    )
    cosine_memory: float = Field(
        0.9, ge=0, lt=1, description="adaptive schedule: decay of the running mean of the cosine"
    )
    cosine_threshold: float = Field(
        0.9,
        ge=-1,
        le=1,
        description="adaptive schedule: the learning rate is raised if the cosine is below this",
    )
    clip: float | None = Field(
        None, gt=0, description="largest norm of each model's gradient; larger ones are scaled down"
    )
    gradient_memory: float = Field(
        0.0, ge=0, lt=1, description="decay of a running mean of the gradients; 0: no running mean"
    )
    gradient_weight: float = Field(
        2.0, ge=0, description="weight with which the running mean is added to the gradient"
    )
    chunk: int = Field(
        20,
        ge=1,
        description="number of steps whose data are drawn at once (a chunk); another number gives "
        "other data; an interrupted run stops at the end of a chunk",
    )
    accumulate: int = added_later(
        1,
        ge=1,
        description="gradient accumulation: number of equal parts into which a batch is divided",
    )
    autocast: Literal["none", "bfloat16"] = added_later(
        "none",
        description="dtype of matrix products in training; the parameters keep their own dtype",
    )
    schedule_steps: int | None = added_later(
        None,
        ge=1,
        description="number of steps for which warmup, decay_every, measure_every and stages are "
        "given; they are scaled in proportion to the steps of the training; null: not scaled",
    )
    stages: tuple[Stage, ...] = added_later(
        (),
        description="a curriculum: stages that precede training on the task's own prompts",
    )
    model_args: dict[str, Any] = Field(
        {}, description="arguments of the model, for architectures that have them"
    )
    task_args: dict[str, Any] = Field(
        {}, description="arguments of the task, for tasks that have them"
    )

    @model_validator(mode="after")
    def _parts_are_equal(self) -> Recipe:
        if self.batch % self.accumulate:
            raise ValueError(
                f"a batch of {self.batch} can't be divided into {self.accumulate} equal parts "
                "(accumulate)"
            )
        return self

    @model_validator(mode="after")
    def _stages_end_before_the_training(self) -> Recipe:
        taken, steps = sum(stage.steps for stage in self.stages), self.schedule_steps or self.steps
        if taken > steps:
            raise ValueError(
                f"the stages take {taken:,} steps of {steps:,}; schedule_steps scales them"
            )
        return self


SMOKE = Recipe(
    steps=20,
    batch=16,
    schedule="cosine",
    model_args={"layers": 1, "width": 16},
)


def smoke_recipe(**task_args: Any) -> Recipe:
    """The recipe `smoke` with arguments of a task: seconds, to see that everything runs."""
    return SMOKE.model_copy(update={"task_args": task_args})


QUICK = Recipe(
    steps=1500,
    batch=64,
    learning_rate=7e-4,
    schedule="cosine",
    warmup=50,
    # From GPT-2's 0.02, so few steps would learn nothing.
    model_args={"layers": 2, "init_std": 0.06},
)
