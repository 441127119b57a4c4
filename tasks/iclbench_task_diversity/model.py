"""The model `discrete-mmse`: the Bayes predictor of a pool, with the pool as its parameters."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from iclbench import Architecture, Config, Construction, Regression, Signature, Task, UsageError

from .estimators import discrete_mmse
from .task import TaskDiversity


class MixtureConfig(Config):
    """The number of weight vectors, and the noise that the model expects."""

    tasks: int = Field(ge=1, description="M, number of weight vectors in the model")
    noise: float = Field(0.5, gt=0, description="σ, standard deviation of the noise on y")


class FromPool(Construction):
    """The weight vectors of the task's pool, and its noise: the Bayes predictor (dMMSE)."""

    summary = "the weight vectors of the task's pool: dMMSE (Raventós et al. 2023)"

    def build(
        self, signature: Signature, args: Config, task: Task[Any]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The arguments and the pool; raises UsageError for a task without one."""
        if not isinstance(task, TaskDiversity):
            raise UsageError(f"{task.name} has no pool of weights; task-diversity has one")
        if not task.config.tasks:
            raise UsageError("with tasks=0 there is no pool: ridge is the Bayes predictor")
        return {"tasks": task.config.tasks, "noise": task.config.noise}, {"pool": task.pool}


class DiscreteMMSE(Architecture):
    """The posterior mean of w uniform on M vectors, after every prefix.

    The vectors are parameters. `--weights pool` takes those of the task: the model is then the
    Bayes predictor on the pool's prompts, and what a model that memorizes the pool would do on
    others. Without it they are learned.
    """

    name = "discrete-mmse"
    Config = MixtureConfig
    constructions = {"pool": FromPool()}

    def supports(self, signature: Signature, config: Any) -> str | None:
        """It answers every prefix of a regression prompt."""
        if signature.prompt is not Regression or signature.target != "prefixes":
            return "it answers every prefix of examples (x, y)"
        return None

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """A module with one parameter, `pool` (M, D)."""
        return _Mixture(config.tasks, signature.shapes["x"][1], config.noise)


class _Mixture(nn.Module):
    def __init__(self, tasks: int, dim: int, noise: float) -> None:
        super().__init__()
        self.pool, self.noise = nn.Parameter(torch.randn(tasks, dim)), noise

    def forward(self, prompt: Regression) -> Tensor:
        """The posterior mean of every prefix, (B, N+1, 1)."""
        return discrete_mmse(prompt.inputs(), prompt.y, self.pool, self.noise)
