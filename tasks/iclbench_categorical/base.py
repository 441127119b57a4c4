"""What the categorical tasks share: categories of a softmax, pools, metrics and their bound."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Categorical,
    ClassificationConfig,
    ClassificationTask,
    Signature,
    Streams,
    philox,
)

from .recipes import PAPER, QUICK


class CategoricalConfig(ClassificationConfig):
    """The context and the categories."""

    dim: int = Field(10, ge=1, description="d, dimension of x")
    classes: int = Field(25, ge=2, description="C, number of categories")
    embedding: int = Field(5, ge=1, description="d', dimension of f and of the embeddings w_c")
    examples: int = Field(10, ge=1, description="N, examples in a context")


ConfigT = TypeVar("ConfigT", bound=CategoricalConfig)


class Draws(NamedTuple):
    """Raw draws behind n contexts of N + Q points, float64; `shape` is the function's own."""

    x: Tensor  # (n, N + Q, d), the inputs before they are rounded
    choice: Tensor  # (n, N + Q), uniform: picks each category
    order: Tensor  # (n, C), uniform: their order picks the context's categories
    shape: Tensor  # (n, …)


class CategoricalTask(ClassificationTask[ConfigT]):
    """y ~ softmax(W_e f(x)), f another function in every context (categorical, eq. 1).

    W_e (C, d') is drawn once, from `task_seed`, N(0, 1); `truth` holds log p(c | x) of the queries.
    """

    recipes = {"paper": PAPER, "quick": QUICK}
    #: Name under which evaluation draws are derived.
    stream: str

    @property
    def signature(self) -> Signature:
        """S = N + Q tokens (xᵢ, id of yᵢ), where a query has the id 0; read at the queries."""
        return self.signature_of(self.config.examples, self.config.dim, self.config.classes)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """embedding: W_e (C, d')."""
        source = philox("categorical embedding", self.config.task_seed)
        shape = (self.config.classes, self.config.embedding)
        return {"embedding": torch.from_numpy(source.standard_normal(shape))}

    @abstractmethod
    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, N + Q, d') of each context at its inputs x (n, N + Q, d)."""

    @abstractmethod
    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """x, choice, order and shape; see `Draws`."""

    def evaluation_set(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """One batch of n contexts; x is rounded once, categories are drawn in float64 from that."""
        draws = {k: torch.from_numpy(v) for k, v in self.evaluation_draws(n, seed).items()}
        return [self.arrange(Draws(**draws), dtype)]

    def arrange(self, draws: Draws, dtype: torch.dtype) -> Batch:
        """x is rounded once; categories are drawn in float64 from that."""
        examples = self.config.examples
        stated = draws.x.to(dtype)
        embedding = self.parameters["embedding"].to(draws.x)
        logits = self.function(draws, stated.double(), embedding) @ embedding.mT
        probabilities = logits.log_softmax(dim=2)
        edges = probabilities.exp().cumsum(dim=2)
        # The last edge may round below 1.
        y = (draws.choice.unsqueeze(2) >= edges).sum(dim=2).clamp(max=self.config.classes - 1)
        prompt = Categorical(stated[:, :examples], y[:, :examples], stated[:, examples:])
        return Batch(prompt, y[:, examples:], {"log_probabilities": probabilities[:, examples:]})

    def reference(self, batch: Batch) -> Tensor:
        """log p(c | x) under the true f and W_e."""
        return batch.truth["log_probabilities"]

    def floor(self, batch: Batch) -> dict[str, Tensor]:
        """The bound: the largest probability ("mean max probability"), and the entropy."""
        logs = batch.truth["log_probabilities"]
        return {
            "accuracy": logs.exp().amax(dim=2).mean(dim=1),
            "nll": -(logs.exp() * logs).sum(dim=2).mean(dim=1),
        }


def chosen_classes(order: Tensor, count: int) -> Tensor:
    """The first `count` of each context's categories in a random order, (n, count)."""
    return order.argsort(dim=1)[:, :count]


def standard_draws(config: Any, streams: Streams) -> tuple[Tensor, Tensor]:
    """choice (n, N + Q) and order (n, C), uniform, for training."""
    choice = streams.uniform(config.examples + config.queries)
    return choice, streams.uniform(config.classes)


def standard_evaluation_draws(stream: str, config: Any, n: int, seed: int) -> dict[str, np.ndarray]:
    """The same for evaluation."""
    points = config.examples + config.queries
    return {
        "choice": philox(stream, "choice", seed).uniform(size=(n, points)),
        "order": philox(stream, "order", seed).uniform(size=(n, config.classes)),
    }
