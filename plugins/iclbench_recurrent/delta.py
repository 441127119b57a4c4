"""The delta rule with decay: S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ, o_t = S_tᵀ q_t.

A position may make n such updates with keys k_{t,1} … k_{t,n}; the state decays once, before the
first, and is read after the last (DeltaProduct). Queries are (…, S, K), keys (…, S·n, K), values
(…, S·n, V), β (…, S·n, 1), logarithms of decays (…, S, 1) and states (…, K, V). `recurrent` is the
equation and `chunked` computes the same from products of matrices. Both take the state before the
first position, None for 0, and return the outputs (…, S, V) and the state after the last position.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import solve_triangular
from torch.nn.functional import pad

from .decay import decay_matrix, join, split

#: Updates per chunk.
CHUNK = 64


def recurrent(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    log_decay: Tensor,
    *,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return outputs and the last state, one update after the other."""
    updates = key.shape[-2] // query.shape[-2]
    decay, outputs = log_decay.exp(), []
    if state is None:
        state = key.new_zeros(*value.shape[:-2], key.shape[-1], value.shape[-1])
    for t in range(query.shape[-2]):
        state = decay[..., t, :, None] * state
        for i in range(t * updates, (t + 1) * updates):
            k = key[..., i, :, None]
            # What the state holds for this key moves towards the value.
            error = value[..., i, None, :] - k.mT @ state
            state = state + beta[..., i, :, None] * k * error
        outputs.append((query[..., t, None, :] @ state).squeeze(-2))
    return torch.stack(outputs, dim=-2), state


def chunked(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    log_decay: Tensor,
    *,
    state: Tensor | None = None,
    chunk: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return outputs and the last state, chunk by chunk.

    Within a chunk, S_i = a_{1…i} S_0 + Σ_{j≤i} a_{j+1…i} k_j u_jᵀ, where the rows u of U solve
    (I + tril₋₁(diag(β) (KKᵀ ⊙ D))) U = diag(β) (V − diag(a_{1…i}) K S_0) and D is the matrix of
    decays a_{j+1…i} (the WY form). The inverse is applied to V and K before S_0 is known, so that
    only products with S_0 remain for the loop over chunks.
    """
    length, updates = query.shape[-2], key.shape[-2] // query.shape[-2]
    positions = min(length, max(1, (chunk or CHUNK) // updates))
    # A position's decay comes before its first update.
    log_decay = pad(log_decay.unsqueeze(-2), (0, 0, 0, updates - 1)).flatten(-3, -2)
    q = split(query, positions)
    k, v, b, log_a = (split(t, positions * updates) for t in (key, value, beta, log_decay))
    within = decay_matrix(log_a.squeeze(-1))
    from_start = log_a.cumsum(dim=-2).exp()
    mixing = (b * (k @ k.mT) * within).tril(-1)
    right = b * torch.cat([v, from_start * k], dim=-1)
    solved = solve_triangular(mixing, right, upper=False, unitriangular=True)
    updates_from_zero, per_state = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    # The rows after each position's last update.
    read = slice(updates - 1, None, updates)
    scores = (q @ k.mT) * within[..., read, :]
    q = q * from_start[..., read, :]
    k = k * within[..., -1, :].unsqueeze(-1)
    total = from_start[..., -1:, :]
    outputs = []
    for n in range(q.shape[-3]):
        u = updates_from_zero[..., n, :, :]
        # Without a state before them, the first chunk takes no products with it.
        if state is not None:
            u = u - per_state[..., n, :, :] @ state
        output, added = scores[..., n, :, :] @ u, k[..., n, :, :].mT @ u
        if state is not None:
            output = output + q[..., n, :, :] @ state
            added = added + total[..., n, :, :] * state
        outputs.append(output)
        state = added
    assert state is not None
    return join(torch.stack(outputs, dim=-3), length), state
