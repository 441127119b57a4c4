"""What the least-squares tasks share: their problems, their loss and their recipe."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from iclbench import Batch, DrawnTask, Streams

from .problems import (
    LeastSquaresConfig,
    Problems,
    draw_problems,
    evaluation_problems,
    sample_problems,
)
from .recipes import GAUSS_NEWTON, LBFGS, PAPER, PRECISION, SOAP

ConfigT = TypeVar("ConfigT", bound=LeastSquaresConfig)


class LeastSquaresTask(DrawnTask[ConfigT]):
    """A task on regression problems; all see the same problems and differ in what they ask."""

    recipes = {
        "paper": PAPER,
        "precision": PRECISION,
        "soap": SOAP,
        "gauss-newton": GAUSS_NEWTON,
        "lbfgs": LBFGS,
    }
    replica_args = frozenset({"noise", "condition_number"})

    @abstractmethod
    def arrange(self, problems: Problems, dtype: torch.dtype) -> Batch:
        """The prompts, in `dtype`, and the targets, in the problems' own, of what is asked."""

    def drawn(self, streams: Streams) -> Batch:
        """Fresh prompts with their targets."""
        return self.arrange(self.problems(streams), streams.dtype)

    def problems(self, streams: Streams) -> Problems:
        """Problems for training, in the streams' dtype."""
        return sample_problems(self.config, streams)

    def evaluation_draws(self, n: int, seed: int) -> dict[str, np.ndarray]:
        """x, w, noise and rotation, all standard normal."""
        return draw_problems(self.config, n, seed)

    def evaluation_set(self, n: int, seed: int, dtype: torch.dtype) -> list[Batch]:
        """One batch of n prompts."""
        return [self.arrange(self.evaluation_problems(n, seed, dtype), dtype)]

    def evaluation_problems(self, n: int, seed: int, dtype: torch.dtype) -> Problems:
        """n problems in float64, their independent inputs rounded to `dtype`."""
        return evaluation_problems(self.config, n, seed, dtype)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of x, y and query, for a signature."""
        c = self.config
        return {"x": (c.examples, c.dim), "y": (c.examples, 1), "query": (1, c.dim)}

    def ask(self, prompt: Any, query: Tensor) -> Any:
        """The prompt with another query (B, 1, D), which is also the start of the last token."""
        last = torch.cat([query, prompt.tokens[:, -1:, query.shape[2] :]], dim=2)
        tokens = torch.cat([prompt.tokens[:, :-1], last], dim=1)
        return prompt._replace(tokens=tokens, query=query)

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Mean squared error of each prompt, (B,)."""
        return mse_loss(prediction, target, reduction="none").mean(dim=(1, 2))
