"""ClassificationTask: what tasks share that ask for the classes of inputs in context."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import torch
from pydantic import Field
from torch import Tensor

from .prompts import Batch, Categorical, Signature, map_tensors
from .random import torch_generator
from .streams import DrawnTask, Streams
from .task import Primary, TaskConfig


class ClassificationConfig(TaskConfig):
    """What is asked, and what training sees."""

    queries: int = Field(1, ge=1, description="Q, inputs that are asked for in one prompt")
    pool: int | None = Field(
        None, ge=1, description="L, training contexts, the same for every run; null: always fresh"
    )


ConfigT = TypeVar("ConfigT", bound=ClassificationConfig)


class ClassificationTask(DrawnTask[ConfigT]):
    """Contexts of examples (x, class) and queries; fresh ones, or a fixed pool of them.

    A subclass draws contexts (`draw`) and makes prompts of the draws (`arrange`). Metrics are the
    accuracy and the cross-entropy, by whose mean models are ranked.
    """

    training_only = frozenset({"pool"})

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        self._pools: dict[tuple[torch.device, torch.dtype], Batch] = {}

    @property
    def primary(self) -> Primary:
        """The negative log-likelihood of the queries' classes."""
        return Primary("nll", "lower", "mean", "linear")

    def signature_of(self, examples: int, dim: int, classes: int) -> Signature:
        """S = N + Q tokens (xᵢ, id of yᵢ), where a query has the id 0; read at the queries."""
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

    @abstractmethod
    def draw(self, streams: Streams) -> Any:
        """What determines a training context for each of the streams' rows.

        A NamedTuple of tensors (rows, …), float64 (which the streams' dtype is) or int64.
        """

    @abstractmethod
    def arrange(self, draws: Any, dtype: torch.dtype) -> Batch:
        """The prompts of such draws, on their device, with what the task alone knows."""

    def drawn(self, streams: Streams) -> Batch:
        """Contexts: fresh ones, or from the pool in shuffled passes over it.

        Every call begins a new pass, so passes are whole where n, which is a recipe's chunk times
        its batch, is a multiple of L; else the last one is cut short.
        """
        if self.config.pool is not None:
            return self.pooled(streams.passes(self.config.pool), streams.dtype)
        return self.arrange(self.draw(streams.of(torch.float64)), streams.dtype)._replace(truth={})

    def pooled(self, chosen: Tensor, dtype: torch.dtype) -> Batch:
        """Those of the L training contexts, on the device of `chosen` (n,)."""
        key = (chosen.device, dtype)
        if key not in self._pools:
            made = self.arrange(self.pool_draws(), dtype)
            prompt = map_tensors(lambda t: t.to(chosen.device), made.prompt)
            self._pools[key] = Batch(prompt, made.target.to(chosen.device))
        pool = self._pools[key]
        return Batch(map_tensors(lambda t: t[chosen], pool.prompt), pool.target[chosen])

    def pool_draws(self) -> Any:
        """The draws of the pool, on the CPU from `task_seed`: the same on every device."""
        cpu = torch.device("cpu")
        assert self.config.pool is not None
        generator = torch_generator(cpu, "categorical pool", self.name, self.config.task_seed)
        return self.draw(Streams(self.config.pool, [generator], cpu, torch.float64))

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The mean cross-entropy of the queries' classes, (B,)."""
        logs = prediction.log_softmax(dim=2)
        return -logs.gather(2, target.unsqueeze(2))[..., 0].mean(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, and nll, the cross-entropy, each the mean over the queries, (B,)."""
        right = prediction.argmax(dim=2) == batch.target
        return {
            "accuracy": right.double().mean(dim=1),
            "nll": self.loss(prediction, batch.target),
        }
