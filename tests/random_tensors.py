"""Random tensors for tests."""

from __future__ import annotations

import torch
from torch import Tensor


def randn(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers of a shape that follow from the seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
