"""ClassificationTask: tasks that ask for the classes of inputs in context."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

import torch
from pydantic import Field
from torch import Tensor

from .draws import Draws, TrainingRandom
from .prompts import Batch, Categorical, Signature, map_tensors, to_device
from .random import torch_generator
from .task import Primary, Task, TaskConfig


class ClassificationConfig(TaskConfig):
    """The queries, and the contexts that training sees."""

    queries: int = Field(1, ge=1, description="Q, inputs whose class is asked for in one prompt")
    pool: int | None = Field(
        None,
        ge=1,
        description="L, number of fixed training contexts, the same in every run; null: all fresh",
    )


ConfigT = TypeVar("ConfigT", bound=ClassificationConfig)


class ClassificationTask(Task[ConfigT]):
    """Contexts of examples (x, class) and queries; fresh ones, or a fixed pool of them.

    The metrics are the accuracy and the cross-entropy; models are ranked by the mean of the latter.
    """

    training_only = frozenset({"pool"})
    exact = True
    errors = {}

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        self._pools: dict[tuple[torch.device, torch.dtype], Batch] = {}

    @property
    def primary(self) -> Primary:
        """The negative log-likelihood of the queries' classes."""
        return Primary("nll")

    def signature_of(self, examples: int, dim: int, classes: int) -> Signature:
        """S = N + Q tokens (xᵢ, id of yᵢ), where a query has id 0; read at the queries."""
        queries = self.config.queries
        return Signature(
            prompt=Categorical,
            target="class",
            length=examples + queries,
            input_width=dim,
            output_width=classes,
            readout=tuple(range(examples, examples + queries)),
            vocabulary=classes + 1,
            classes=classes,
            shapes={"x": (examples, dim), "y": (examples,), "query": (queries, dim)},
        )

    def training_prompts(self, random: TrainingRandom, dtype: torch.dtype) -> Batch:
        """Fresh contexts, or those of the pool in shuffled passes.

        Every call starts a new pass. Passes are whole if the number of rows per replica (a
        recipe's chunk times its batch) is a multiple of L; otherwise the last one is cut short.
        """
        if self.config.pool is None:
            return super().training_prompts(random, dtype)
        return self.pooled(random.passes(self.config.pool), dtype)

    @cached_property
    def pool_draws(self) -> Draws:
        """The draws of the pool, made on the CPU from `task_seed`: the same on every device."""
        assert self.config.pool is not None
        generator = torch_generator("cpu", "categorical pool", self.name, self.config.task_seed)
        return self.draw(TrainingRandom([generator], [self.config.pool], torch.float64))

    def pooled(self, chosen: Tensor, dtype: torch.dtype) -> Batch:
        """The chosen contexts of the pool (n,), on the device of `chosen`."""
        key = (chosen.device, dtype)
        if key not in self._pools:
            pool = self.round_and_arrange(self.pool_draws, dtype)
            self._pools[key] = Batch(to_device(pool.prompt, key[0]), pool.target.to(key[0]))
        pool = self._pools[key]
        return Batch(map_tensors(lambda t: t[chosen], pool.prompt), pool.target[chosen])

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The mean cross-entropy of the queries' classes, (B,)."""
        logs = prediction.log_softmax(dim=2)
        return -logs.gather(2, target.unsqueeze(2))[..., 0].mean(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, and nll, the cross-entropy; means over the queries, (B,).

        Where a logit is NaN, the class counts as wrong and nll is NaN.
        """
        right = (prediction.argmax(dim=2) == batch.target) & ~prediction.isnan().any(dim=2)
        return {
            "accuracy": right.double().mean(dim=1),
            "nll": self.loss(prediction, batch.target),
        }
