"""Linear attention with decay: S_t = diag(a_t) S_{t−1} + k_t v_tᵀ and o_t = S_tᵀ q_t.

Queries and keys are (…, S, K), values (…, S, V), logarithms of decays (…, S, K), or (…, S, 1) for
one decay per head, and states (…, K, V). Leading dimensions broadcast. `recurrent` is the equation
and `chunked` computes the same from products of matrices. Both take the state before the first
position, None for 0, and return the outputs (…, S, V) and the state after the last position.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .decay import carry, decay_matrix, join, split

#: Positions per chunk with one decay per head, …
CHUNK = 64
#: … and with one per key, whose scores need C numbers per position and key.
CHUNK_OF_KEYS = 16


def recurrent(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return outputs and the last state, one position after the other."""
    decay, outputs = log_decay.exp(), []
    for t in range(value.shape[-2]):
        update = key[..., t, :, None] * value[..., t, None, :]
        state = update if state is None else decay[..., t, :, None] * state + update
        outputs.append((query[..., t, None, :] @ state).squeeze(-2))
    assert state is not None
    return torch.stack(outputs, dim=-2), state


def chunked(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor,
    *,
    state: Tensor | None = None,
    chunk: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return outputs and the last state, chunk by chunk."""
    length, per_head = value.shape[-2], log_decay.shape[-1] == 1
    chunk = min(length, chunk or (CHUNK if per_head else CHUNK_OF_KEYS))
    q, k, v, log_a = (split(t, chunk) for t in (query, key, value, log_decay))
    within = decay_matrix(log_a.mT)  # (…, n, K or 1, C, C)
    if per_head:
        scores = (q @ k.mT) * within.squeeze(-3)
    else:
        scores = (q.mT.unsqueeze(-1) * within * k.mT.unsqueeze(-2)).sum(dim=-3)
    from_start = log_a.cumsum(dim=-2).exp()
    to_end = within[..., -1, :].mT
    total = from_start[..., -1:, :].mT
    before, state = carry(total, (k * to_end).mT @ v, state)
    return join(scores @ v + (q * from_start) @ before, length), state
