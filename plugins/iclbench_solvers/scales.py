"""What the defaults of classifiers take from the context: smoothing, and a typical distance."""

from __future__ import annotations

import torch
from torch import Tensor


def smoothing_weight(smoothing: float | None, examples: int | Tensor, classes: int) -> Tensor:
    """The weight of the uniform distribution in float64, by default C/2 / (N + C/2).

    The default adds half an example of each class to the N that the probabilities are counted
    from (Krichevsky and Trofimov 1981).
    """
    count = torch.as_tensor(examples).double()
    if smoothing is not None:
        return torch.full_like(count, smoothing)
    # (C/2) / (N + C/2) without the fractions.
    return classes / (2.0 * count + classes)


def smoothed(probabilities: Tensor, weight: Tensor) -> Tensor:
    """The mixture of probabilities (…, C) with the uniform distribution."""
    weight = weight.to(probabilities)
    return (1.0 - weight) * probabilities + weight / probabilities.shape[-1]


def median_distance(x: Tensor) -> Tensor:
    """The median distance of two examples of x (B, N, D), (B, 1, 1); 1 where it would be 0."""
    first, second = torch.triu_indices(x.shape[1], x.shape[1], 1, device=x.device)
    # One example has no distance to another.
    if not len(first):
        return torch.ones_like(x[:, :1, :1])
    # Not from products, which would lose digits for near points.
    distances = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")[:, first, second]
    median = distances.median(dim=1).values[:, None, None]
    return torch.where(median > 0, median, 1.0)
