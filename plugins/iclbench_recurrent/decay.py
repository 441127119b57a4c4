"""Products of decays, and recurrences whose transitions are decays.

Decays are numbers in [0, 1], given by their logarithms. Nothing here divides by a product of decays
or exponentiates a positive number: such products underflow after a few steps of a strong decay.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def decay_matrix(log_decay: Tensor) -> Tensor:
    """Return Π_{j<t≤i} a_t at [i, j] for i ≥ j and 0 elsewhere: log a (…, C) → (…, C, C).

    Each sum of logarithms is its own, since a difference of two cumulative sums cancels.
    """
    steps = log_decay.unsqueeze(-1).expand(*log_decay.shape, log_decay.shape[-1])
    return steps.tril(-1).cumsum(dim=-2).exp().tril()


def scan(decay: Tensor, update: Tensor) -> Tensor:
    """Return all h_n = decay_n ⊙ h_{n−1} + update_n with h_{−1} = 0, along dimension −3.

    Pairs of neighbouring steps are combined into one step, so that n steps take 2 log₂ n operations
    and about twice the work of a loop. `decay` broadcasts to `update` (…, n, a, b).
    """
    steps = update.shape[-3]
    if steps == 1:
        return update
    even_decay, odd_decay = decay[..., ::2, :, :], decay[..., 1::2, :, :]
    even_update, odd_update = update[..., ::2, :, :], update[..., 1::2, :, :]
    pairs = steps // 2
    odd = scan(
        odd_decay * even_decay[..., :pairs, :, :],
        odd_decay * even_update[..., :pairs, :, :] + odd_update,
    )
    later = slice(1, None)
    before = odd[..., : even_update.shape[-3] - 1, :, :]
    even = even_decay[..., later, :, :] * before + even_update[..., later, :, :]
    even = torch.cat([even_update[..., :1, :, :], even], dim=-3)
    paired = torch.stack([even[..., :pairs, :, :], odd], dim=-3).flatten(-4, -3)
    # An odd number of steps leaves one without a partner.
    return torch.cat([paired, even[..., pairs:, :, :]], dim=-3)


def carry(total: Tensor, update: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the states before each chunk (…, n, a, b), and the last one (…, a, b).

    `total` is the decay over each chunk and `update` (…, n, a, b) what it adds to the state.
    `state` is the state before the first chunk, None for 0.
    """
    if state is None:
        ends = scan(total, update)
        first = torch.zeros_like(ends[..., :1, :, :])
    else:
        first = state.unsqueeze(-3)
        begun = total[..., :1, :, :] * first + update[..., :1, :, :]
        ends = scan(total, torch.cat([begun, update[..., 1:, :, :]], dim=-3))
    return torch.cat([first, ends[..., :-1, :, :]], dim=-3), ends[..., -1, :, :]


def split(x: Tensor, chunk: int) -> Tensor:
    """Divide x (…, S, d) into chunks (…, n, C, d), the last one padded with zeros."""
    *lead, length, width = x.shape
    padded = pad(x, (0, 0, 0, -length % chunk))
    return padded.reshape(*lead, -1, chunk, width)


def join(x: Tensor, length: int) -> Tensor:
    """Undo `split`: chunks (…, n, C, d) → (…, S, d) for S = length."""
    return x.flatten(-3, -2)[..., :length, :]
