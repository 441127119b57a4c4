"""Seeds and generators derived from names, so that no stream of random numbers disturbs another."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(*parts: str | int) -> int:
    """A 63-bit seed from names and numbers, the same on every machine and version."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def philox(*parts: str | int) -> np.random.Generator:
    """NumPy's Philox generator, seeded from names and numbers: float64, on the CPU."""
    return np.random.Generator(np.random.Philox(derive_seed(*parts)))


def torch_generator(device: torch.device | str, *parts: str | int) -> torch.Generator:
    """A torch generator on `device`, seeded from names and numbers."""
    import torch

    return torch.Generator(device=device).manual_seed(derive_seed(*parts))
