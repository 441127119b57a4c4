"""PrefixTask: regression in context, with an answer after every prefix of the examples."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from pydantic import Field
from torch import Tensor

from .prompts import Batch, Regression, Signature
from .scoring import Axis, Primary
from .task import Task, TaskConfig


class PrefixConfig(TaskConfig):
    """The sizes of a prompt."""

    dim: int = Field(20, ge=1, description="D, dimension of the inputs")
    examples: int = Field(40, ge=1, description="N, number of examples in the context")


ConfigT = TypeVar("ConfigT", bound=PrefixConfig)


class PrefixTask(Task[ConfigT]):
    """Predict the value at x_{k+1} from the first k examples, for every k = 0…N.

    Tokens are interleaved, x₁, y₁, …, x_N, y_N, x_query, so S = 2N + 1. The answers are read at the
    inputs, and the model must be causal. A subclass gives `draw` and `arrange`, whose targets are
    (B, N + 1, 1). Targets of NaN do not count in the loss, so that a stage of a training may score
    the first prefixes only.
    """

    #: Whether a value has a feature of its own beside the D of inputs, or takes the first of them.
    separate_values: ClassVar[bool] = False
    errors = {"squared_error": "squared", "prefix_error": "squared"}

    @property
    def primary(self) -> Primary:
        """The squared error at the query, after all N examples."""
        return Primary("squared_error")

    @property
    def signature(self) -> Signature:
        """S = 2N + 1 tokens of width D, or D + 1 where values are separate, read at every input."""
        c = self.config
        length = 2 * c.examples + 1
        return Signature(
            prompt=Regression,
            target="prefixes",
            length=length,
            input_width=c.dim + self.separate_values,
            output_width=1,
            readout=tuple(range(0, length, 2)),
            # Each input is followed by its answer, so a model that looks ahead would read it.
            causal=True,
            shapes={"x": (c.examples, c.dim), "y": (c.examples, 1), "query": (1, c.dim)},
        )

    @property
    def axes(self) -> dict[str, Axis]:
        """prefix_error runs over the prefixes k = 0…N."""
        return {"prefix_error": Axis("prefix", tuple(map(float, range(self.config.examples + 1))))}

    def prompt_of(self, x: Tensor, y: Tensor) -> Regression:
        """The prompt of inputs x (B, N+1, D), the query last, and values y (B, N, 1)."""
        return Regression.interleaved(x, y, separate=self.separate_values)

    def mask_after(self, prompt: Regression, position: int) -> Regression:
        """Replaces the value after that prefix, and later inputs and their values."""
        return prompt.masked_after(position)

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The squared error of each prompt, (B,): its mean over the prefixes that count."""
        counts = ~target.isnan()
        # Not NaN times 0: a NaN would stay in the gradient.
        errors = (prediction - target.nan_to_num()).square() * counts
        return errors.sum(dim=(1, 2)) / counts.sum(dim=(1, 2))

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """prefix_error (B, N+1), and squared_error (B,), its last: the query after N examples."""
        errors = (prediction - batch.target).squeeze(2).square()
        return {"squared_error": errors[:, -1], "prefix_error": errors}
