"""Causal masks, made once per size and kept."""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: Causal masks by size, dtype and device.
MASKS: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}


def causal_mask(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0 where a query may see a key and −∞ elsewhere, (length, length).

    One mask per power of two is kept, so there are few however many lengths are seen.
    """
    size = 1 << (length - 1).bit_length()
    mask = MASKS.get((size, dtype, device))
    if mask is None:
        mask = torch.full((size, size), -math.inf, dtype=dtype, device=device).triu(1)
        if _outlives_its_context(mask):
            MASKS[size, dtype, device] = mask
    return mask[:length, :length]


def query_mask(query: Tensor, key: Tensor, positions: slice | None) -> Tensor:
    """The rows (t, n) of the causal mask for t queries at `positions`, or at the last t of n."""
    asking, length = query.shape[2], key.shape[2]
    rows = slice(length - asking, length) if positions is None else positions
    return causal_mask(length, query.dtype, query.device)[rows]


def _outlives_its_context(mask: Tensor) -> bool:
    """Whether a tensor stays valid after the transform, mode or capture that it was made in."""
    try:
        mask.untyped_storage()
    except NotImplementedError:  # wrapped by torch.func
        return False
    return type(mask) is Tensor and not (mask.is_cuda and torch.cuda.is_current_stream_capturing())
