"""Drawing without replacement from uniform numbers, for many draws at once."""

from __future__ import annotations

import torch
from torch import Tensor


def without_replacement(uniform: Tensor, size: Tensor) -> Tensor:
    """k different numbers below `size` (…), all ordered choices equally likely, (…, k) int64.

    `uniform` (…, k) holds float64 draws on [0, 1); k is at most the smallest size. The j-th draw
    picks one of the remaining size − j numbers.
    """
    picked: list[Tensor] = []
    for j, draw in enumerate(uniform.unbind(dim=-1)):
        left = size - j
        number = torch.minimum((draw * left).long(), left - 1)
        # Convert a rank among the remaining numbers: step over taken ones in ascending order.
        if picked:
            for taken in torch.stack(picked, dim=-1).sort(dim=-1).values.unbind(dim=-1):
                number = number + (number >= taken)
        picked.append(number)
    return torch.stack(picked, dim=-1)
