"""Read-outs: the positions whose states are read, and the map from these to a prediction."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..api.prompts import Signature


def read_positions(signature: Signature) -> slice | list[int]:
    """Return the positions whose states are read; one that is asked several times is read once."""
    positions = signature.readout
    return as_slice(positions[:1] if signature.reads_one_state else positions)


def held_on(device: torch.device, positions: slice | list[int]) -> slice | Tensor:
    """Return the positions as an index that lies on the device."""
    return positions if isinstance(positions, slice) else torch.tensor(positions, device=device)


def as_slice(positions: tuple[int, ...]) -> slice | list[int]:
    """Return the positions as a slice if they are evenly spaced, else as a list.

    Indexing a GPU tensor by a list copies the list to the GPU, and waits, at every call; training
    forms index by `held_on`.
    """
    first, last = positions[0], positions[-1]
    step = positions[1] - first if len(positions) > 1 else 1
    if step > 0 and positions == tuple(range(first, last + 1, step)):
        return slice(first, last + 1, step)
    return list(positions)


def new_readout(signature: Signature, width: int) -> nn.Module:
    """Return a linear map (B, P, width) → (B, P, W), or a decoder (B, 1, width) → (B, P, W)."""
    if signature.reads_one_state:
        return StateDecoder(width, len(signature.readout), signature.output_width)
    return nn.Linear(width, signature.output_width)


class StateDecoder(nn.Module):
    """Decode several predictions from one state, as MAD's compression task does.

    A sinusoidal vector per prediction is added to the state, and an MLP with two hidden layers of
    the state's width maps each sum to a prediction (Poli et al. 2024, arXiv 2403.17844). It has no
    parameter that depends on the number of predictions.
    """

    ranks: Tensor

    def __init__(self, width: int, predictions: int, output_width: int) -> None:
        super().__init__()
        self.register_buffer("ranks", sinusoids(predictions, width), persistent=False)
        hidden = [
            part
            for _ in range(2)
            for part in (nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
        ]
        self.mlp = nn.Sequential(*hidden, nn.LayerNorm(width), nn.Linear(width, output_width))

    def forward(self, states: Tensor) -> Tensor:
        """Map a state (B, 1, width) to predictions (B, P, W)."""
        prediction: Tensor = self.mlp(states + self.ranks)
        return prediction


def sinusoids(count: int, width: int) -> Tensor:
    """Sines, then cosines, of 0 … count − 1 times frequencies from 1 to 1e-4, (count, width)."""
    half = (width + 1) // 2
    rates = torch.exp(torch.arange(half) * (-math.log(1e4) / max(1, half - 1)))
    angles = torch.arange(count).unsqueeze(1) * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width]
