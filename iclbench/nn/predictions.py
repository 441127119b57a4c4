"""Several predictions for one prompt, whose losses training averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .logits import FactoredLogits


class SeveralPredictions(NamedTuple):
    """What a model may return in training mode: one prediction per loop or layer, the last last.

    Training takes the mean of their losses. In evaluation mode a model returns one prediction.
    """

    predictions: tuple[Tensor | FactoredLogits, ...]


def averaged(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the loss (B,), averaged over the predictions of `SeveralPredictions`."""

    def mean_loss(prediction: Tensor | SeveralPredictions, target: Tensor) -> Tensor:
        if not isinstance(prediction, SeveralPredictions):
            return loss(prediction, target)
        return torch.stack([loss(part, target) for part in prediction.predictions]).mean(dim=0)

    return mean_loss
