"""Settings that a classifier takes from the context itself: the smoothing, and one by likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

#: Returns probabilities (B, P, C) for a value of the setting.
Probabilities = Callable[[float], Tensor]


def smoothing_weight(smoothing: float | None, examples: int | Tensor, classes: int) -> Tensor:
    """The weight of the uniform distribution, by default C/2 / (N + C/2).

    The default adds half an example of each class to the context (Krichevsky and Trofimov 1981).
    """
    count = torch.as_tensor(examples)
    if smoothing is not None:
        return torch.full_like(count, smoothing, dtype=torch.get_default_dtype())
    return classes / (2.0 * count + classes)


def smoothed(probabilities: Tensor, weight: Tensor) -> Tensor:
    """The mixture of probabilities (…, C) with the uniform distribution."""
    weight = weight.to(probabilities)
    return (1.0 - weight) * probabilities + weight / probabilities.shape[-1]


def most_likely(
    candidates: Sequence[float],
    at_queries: Probabilities,
    left_out: Probabilities,
    labels: Tensor,
    weight: Tensor,
) -> Tensor:
    """`at_queries` of the candidate that predicts the context's classes best, (B, Q, C).

    `left_out` predicts each example from the others, (B, N, C); labels (B, N, C) are one-hot. The
    choice is made for each context, by the likelihood of its examples after smoothing.
    """
    scores, predictions = [], []
    for candidate in candidates:
        likelihood = (smoothed(left_out(candidate), weight) * labels).sum(dim=2)
        scores.append(likelihood.log().sum(dim=1))
        predictions.append(at_queries(candidate))
    # A single example leaves none to predict it from: all scores are NaN, the first is taken.
    best = torch.stack(scores).nan_to_num().argmax(dim=0)
    return torch.stack(predictions)[best, torch.arange(len(best), device=best.device)]
