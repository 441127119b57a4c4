"""Causal masks, created once per size and cached."""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: Cached masks by size, dtype and device.
MASKS: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}


def causal_mask(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return 0 where a query may see a key and −∞ elsewhere, (length, length).

    Sizes are rounded up to powers of two, so few masks are cached for any number of lengths.
    """
    size = 1 << (length - 1).bit_length()
    mask = MASKS.get((size, dtype, device))
    if mask is None:
        mask = torch.full((size, size), -math.inf, dtype=dtype, device=device).triu(1)
        if _is_ordinary(mask):
            MASKS[size, dtype, device] = mask
    return mask[:length, :length]


def query_mask(query: Tensor, key: Tensor, positions: slice | None) -> Tensor:
    """Return rows (t, n) of the causal mask for t queries at `positions`, None for the last t."""
    queries, length = query.shape[2], key.shape[2]
    rows = slice(length - queries, length) if positions is None else positions
    return causal_mask(length, query.dtype, query.device)[rows]


def _is_ordinary(mask: Tensor) -> bool:
    """Whether a tensor stays valid after the transform, mode or capture that created it."""
    try:
        mask.untyped_storage()
    except NotImplementedError:  # wrapped by torch.func
        return False
    return type(mask) is Tensor and not (mask.is_cuda and torch.cuda.is_current_stream_capturing())
