"""Eigenvectors of more matrices than cuSOLVER takes at once."""

from __future__ import annotations

import torch
from torch import Tensor

#: Matrices that are diagonalized at once: cuSOLVER refuses some 32,000.
AT_ONCE = 8192


def eigh(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues (B, N), rising, and eigenvectors (B, N, N) of symmetric (B, N, N)."""
    parts = [torch.linalg.eigh(part) for part in torch.split(matrices, AT_ONCE)]
    return torch.cat([values for values, _ in parts]), torch.cat([basis for _, basis in parts])
