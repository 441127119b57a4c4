"""The task `linear-classification`: the sign of a linear function."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from iclbench import Axis, Batch, Draws, Primary, Random

from .base import FunctionConfig, FunctionTask


class LinearClassification(FunctionTask[FunctionConfig]):
    """y = sign(w·x) with w ~ N(0, I); a prediction is the logit of y = 1.

    There is no closed form of the best predictor, so there is no floor.
    """

    name = "linear-classification"
    version = 1
    floor_summary = (
        "No floor: the probability that w·x > 0, given the examples' signs, has no closed form."
    )
    Config = FunctionConfig
    errors = {}
    fractions = frozenset({"accuracy", "prefix_accuracy"})
    grows = False

    @property
    def primary(self) -> Primary:
        """The accuracy at the query, after all N examples."""
        return Primary("accuracy", "higher")

    @property
    def axes(self) -> dict[str, Axis]:
        """prefix_accuracy runs over the prefixes k = 0…N."""
        return {"prefix_accuracy": super().axes["prefix_error"]}

    def draw_function(self, random: Random) -> Draws:
        """w (rows, D, 1)."""
        return {"w": random.normal("w", self.config.dim, 1)}

    def values(self, x: Tensor, draws: Draws) -> Tensor:
        """1 where w·x > 0, else −1, (B, N+1, 1)."""
        return torch.where(x @ draws["w"] > 0, 1.0, -1.0).to(x)

    def loss(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The cross-entropy of each prompt, (B,): its mean over the prefixes that count."""
        counts = ~target.isnan()
        classes = (target.nan_to_num() + 1.0) / 2.0
        losses = binary_cross_entropy_with_logits(prediction, classes, reduction="none") * counts
        return losses.sum(dim=(1, 2)) / counts.sum(dim=(1, 2))

    def metrics(self, prediction: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Accuracy and nll at the query (B,), and prefix_accuracy (B, N+1).

        A logit of 0 counts as half right, and NaN as wrong.
        """
        logits, target = prediction.squeeze(2), batch.target.squeeze(2)
        right = torch.where(logits == 0, 0.5, (logits * target > 0).double())
        last, classes = prediction[:, -1, 0], (target[:, -1] + 1.0) / 2.0
        nll = binary_cross_entropy_with_logits(last, classes, reduction="none")
        return {"accuracy": right[:, -1], "nll": nll, "prefix_accuracy": right}
