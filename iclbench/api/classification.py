"""ClassificationTask: tasks that ask for the classes of inputs in context."""

from __future__ import annotations

from typing import TypeVar

from pydantic import Field
from torch import Tensor

from .pool import PooledConfig, PooledTask
from .prompts import Batch, Categorical, Signature
from .rightness import rightness
from .scoring import Primary


class ClassificationConfig(PooledConfig):
    """The queries, and the contexts that training sees."""

    queries: int = Field(
        1,
        ge=1,
        description="Q, number of queries in a prompt: inputs whose class is to be predicted",
    )


ConfigT = TypeVar("ConfigT", bound=ClassificationConfig)


class ClassificationTask(PooledTask[ConfigT]):
    """Contexts of examples (x, class) and queries; fresh ones, or a fixed pool of them.

    The metrics are the accuracy and the cross-entropy; models are ranked by the mean of the latter.
    """

    exact = True
    errors = {}
    fractions = frozenset({"accuracy"})

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

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The mean cross-entropy of the queries' classes, (B,)."""
        logs = prediction.log_softmax(dim=2)
        return -logs.gather(2, target.unsqueeze(2))[..., 0].mean(dim=1)

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """accuracy, in which the likeliest classes share a tie, and nll, the cross-entropy.

        Both are means over the queries, (B,). Where a logit is NaN, the class counts as wrong and
        nll is NaN.
        """
        return {
            "accuracy": rightness(prediction, batch.target).mean(dim=1),
            "nll": self.loss(prediction, batch.target),
        }
