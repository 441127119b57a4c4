"""Rightness: whether the likeliest class is the true one, where several may be as likely."""

from __future__ import annotations

from torch import Tensor


def likeliest(logits: Tensor) -> Tensor:
    """Each id's share of the guess, (B, P, V), float64: 1/n for the n likeliest, else 0.

    Where a logit is NaN, all shares are 0.
    """
    best = logits == logits.amax(dim=2, keepdim=True)
    return best.double() / best.sum(dim=2, keepdim=True).clamp(min=1)


def rightness(logits: Tensor, target: Tensor) -> Tensor:
    """1 where the target is the likeliest id, 1/n if n ids are, else 0: (B, P), float64.

    A tie of n ids scores what guessing among them would on average. NaN is never right.
    """
    return likeliest(logits).gather(2, target.unsqueeze(2))[..., 0]
