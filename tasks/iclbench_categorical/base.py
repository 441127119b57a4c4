"""What the categorical tasks share: classes of a softmax, and the bound on the metrics."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import torch
from pydantic import Field
from torch import Tensor

from iclbench import (
    Batch,
    Categorical,
    ClassificationConfig,
    ClassificationTask,
    Draws,
    EvaluationContext,
    FloorKind,
    Random,
    Shift,
    Signature,
    philox,
)

from .recipes import PAPER, QUICK
from .shifts import label_shift, scale_shifts


class CategoricalConfig(ClassificationConfig):
    """The context and the classes."""

    dim: int = Field(10, ge=1, description="d, dimension of x")
    classes: int = Field(25, ge=2, description="C, number of classes")
    embedding: int = Field(
        5, ge=1, description="d', dimension of f and of the class embeddings w_c"
    )
    examples: int = Field(10, ge=1, description="N, examples in a context")

    @property
    def points(self) -> int:
        """N + Q, the inputs of a context."""
        return self.examples + self.queries


ConfigT = TypeVar("ConfigT", bound=CategoricalConfig)


class CategoricalTask(ClassificationTask[ConfigT]):
    """y ~ softmax(W_e f(x)), with another function f in every context (Wang et al., eq. 1).

    W_e (C, d') is drawn once, from `task_seed`, N(0, 1); `truth` holds log p(c | x) of the queries.
    The draws of n contexts are x (n, N + Q, d); choice (n, N + Q), uniform, which picks each y;
    order (n, C), uniform, whose order picks the classes in f; and shape (n, …), which defines f
    otherwise.
    """

    recipes = {"paper": PAPER, "quick": QUICK}
    pool_stream = "categorical pool"
    # The model sees none of these: choice and order pick classes, shape defines f.
    unrounded = frozenset({"choice", "order", "shape"})
    floor_summary = (
        "The paper's bound: the largest probability, and the entropy, under the true f and W_e, "
        "which no prompt shows."
    )

    @property
    def floor_kind(self) -> FloorKind:
        """`bound`: see `floor_summary`."""
        return "bound"

    @property
    def signature(self) -> Signature:
        """S = N + Q tokens (xᵢ, id of yᵢ), where a query has id 0; read at the queries."""
        return self.signature_of(self.config.examples, self.config.dim, self.config.classes)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """embedding: W_e (C, d')."""
        # A stream of its own: W_e is the same in training and in evaluation.
        source = philox("categorical embedding", self.config.task_seed)
        shape = (self.config.classes, self.config.embedding)
        return {"embedding": torch.from_numpy(source.standard_normal(shape))}

    @property
    def shifts(self) -> dict[str, Shift]:
        """Noisy labels, and inputs of other sizes."""
        return {
            "noisy-labels": label_shift(self.config.examples, self.config.classes),
            **scale_shifts(),
        }

    @abstractmethod
    def function(self, draws: Draws, x: Tensor, embedding: Tensor) -> Tensor:
        """f(x) (n, P, d') of each context at inputs x (n, P, d)."""

    def draw_classes(self, random: Random) -> Draws:
        """choice and order."""
        return {
            "choice": random.uniform("choice", self.config.points),
            "order": random.uniform("order", self.config.classes),
        }

    def log_probabilities(self, draws: Draws, x: Tensor) -> Tensor:
        """log p(c | x), (n, P, C), of each context at inputs x (n, P, d)."""
        embedding = self.parameters["embedding"].to(x)
        # Logits are w_cᵀf(x) (eq. 1).
        return (self.function(draws, x, embedding) @ embedding.mT).log_softmax(dim=2)

    def arrange(self, draws: Draws) -> Batch:
        """Contexts, their classes drawn by inverting the distribution function."""
        examples, x = self.config.examples, draws["x"]
        logs = self.log_probabilities(draws, x)
        edges = logs.exp().cumsum(dim=2)
        # The last edge may round below 1.
        y = (draws["choice"].unsqueeze(2) >= edges).sum(dim=2).clamp(max=self.config.classes - 1)
        shown = y[:, :examples]
        if "relabelled" in draws:
            shown = torch.where(draws["relabelled"] < 0, shown, draws["relabelled"])
        # Queries and their classes are drawn like the examples.
        prompt = Categorical(x[:, :examples], shown, x[:, examples:])
        return Batch(prompt, y[:, examples:], {"log_probabilities": logs[:, examples:]})

    def reference(self, batch: Batch) -> Tensor:
        """log p(c | x) under the true f and W_e."""
        # A context only hints at f, so this is a bound and not the best predictor.
        return batch.truth["log_probabilities"]

    def floor(self, batch: Batch, context: EvaluationContext) -> dict[str, Tensor]:
        """The bound: the largest probability ("mean max probability"), and the entropy."""
        logs = batch.truth["log_probabilities"]
        return {
            # The most probable class is right with its own probability; no prediction does better.
            "accuracy": logs.exp().amax(dim=2).mean(dim=1),
            "nll": -(logs.exp() * logs).sum(dim=2).mean(dim=1),
        }


def chosen_classes(order: Tensor, count: int) -> Tensor:
    """The first `count` classes in each context's random order, (n, count)."""
    # The first of a random permutation: a draw without replacement, for all contexts at once.
    return order.argsort(dim=1)[:, :count]
