"""The selective scan of Mamba: h_t = exp(Δ_t A) ⊙ h_{t−1} + (Δ_t x_t) B_tᵀ and y_t = h_t C_t.

x and Δ are (B, S, E), A (E, N) is negative, B and C are (B, S, N), and h is (B, E, N). Every entry
of h has a decay of its own, so there is no form in products of matrices: `parallel` combines pairs
of steps, in 2 log₂ S operations. Both forms take the state before the first position, None for 0,
and return y (B, S, E) and the state after the last position.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .decay import scan


def recurrent(
    x: Tensor, step: Tensor, A: Tensor, b: Tensor, c: Tensor, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return y and the last state, one position after the other."""
    outputs = []
    for t in range(x.shape[1]):
        update = (step[:, t] * x[:, t]).unsqueeze(-1) * b[:, t].unsqueeze(1)
        decay = (step[:, t].unsqueeze(-1) * A).exp()
        state = update if state is None else decay * state + update
        outputs.append((state @ c[:, t].unsqueeze(-1)).squeeze(-1))
    assert state is not None
    return torch.stack(outputs, dim=1), state


def parallel(
    x: Tensor, step: Tensor, A: Tensor, b: Tensor, c: Tensor, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return y and the last state, all positions at once."""
    decay = (step.unsqueeze(-1) * A).exp()
    update = (step * x).unsqueeze(-1) * b.unsqueeze(2)
    if state is not None:
        begun = decay[:, :1] * state.unsqueeze(1) + update[:, :1]
        update = torch.cat([begun, update[:, 1:]], dim=1)
    states = scan(decay, update)
    return (states @ c.unsqueeze(-1)).squeeze(-1), states[:, -1]
