"""The mixers Mamba (S6) and Mamba-2 (SSD)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu, softplus

from . import linear, selective
from .mixer import (
    Form,
    HeadNorm,
    RecurrentMixer,
    ShortConvolution,
    join_heads,
    project,
    run,
    split_heads,
    step_bias,
)


class Mamba(RecurrentMixer):
    """h_t = exp(Δ_t A) ⊙ h_{t−1} + Δ_t x_t B_tᵀ, y_t = h_t C_t + D x_t (Gu and Dao 2023, alg. 2).

    Δ, B and C follow from x, the convolved input of `inner` channels; the output is gated by
    silu(z). `log_rate` (inner, N) is log(−A), and `skip` (inner,) is D.
    """

    recurrent = staticmethod(selective.recurrent)
    chunked = staticmethod(selective.parallel)
    short = 256

    def __init__(self, width: int, inner: int, states: int, init_std: float) -> None:
        super().__init__()
        self.inner, self.states, self.rank = inner, states, math.ceil(width / 16)
        self.input = project(width, 2 * inner, init_std)
        self.convolution = ShortConvolution(inner, bias=True)
        self.selection = project(inner, self.rank + 2 * states, init_std)
        # The paper's initial values: Δ begins log-uniform, and varies with the input by as much.
        self.step = nn.Linear(self.rank, inner)
        nn.init.uniform_(self.step.weight, -(self.rank**-0.5), self.rank**-0.5)
        self.step.bias = nn.Parameter(step_bias(inner))
        self.log_rate = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.output = project(inner, width, init_std)

    def mix(self, x: Tensor, cache: Any, form: Form) -> tuple[Tensor, Any]:
        """See `RecurrentMixer.mix`; the cache is h and the inputs kept by the convolution."""
        state, kept = (None, None) if cache is None else cache
        u, z = self.input(x).split(self.inner, dim=-1)
        u, kept = self.convolution(u, kept)
        rank, b, c = self.selection(u).split([self.rank, self.states, self.states], dim=-1)
        # Added outside the product: autocast would round the sum to its own dtype.
        step = softplus(nn.functional.linear(rank, self.step.weight) + self.step.bias)
        y, state = run(form, u, step, -self.log_rate.exp(), b, c, state=state)
        output: Tensor = self.output((y + self.skip * u) * silu(z))
        return output, (state, kept)

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: h, and the convolution's last inputs."""
        return (self.inner * self.states + self.convolution.kept,)


class Mamba2(RecurrentMixer):
    """S_t = exp(Δ_t A) S_{t−1} + Δ_t B_t x_tᵀ, y_t = S_tᵀ C_t + D x_t per head (Dao and Gu 2024).

    A, D and Δ are one number per head, and all heads share B and C: linear attention with queries
    C, keys B, values Δx and decays exp(ΔA). `log_rate` and `skip` (heads,) are log(−A) and D.
    """

    kernel = "linear"
    recurrent = staticmethod(linear.recurrent)
    chunked = staticmethod(linear.chunked)

    def __init__(self, width: int, inner: int, states: int, heads: int, init_std: float) -> None:
        super().__init__()
        self.inner, self.states, self.heads = inner, states, heads
        self.input = project(width, 2 * inner + 2 * states + heads, init_std)
        self.convolution = ShortConvolution(inner + 2 * states, bias=True)
        self.step_bias = nn.Parameter(step_bias(heads))
        self.log_rate = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.skip = nn.Parameter(torch.ones(heads))
        self.norm = HeadNorm(inner)
        self.output = project(inner, width, init_std)

    def mix(self, x: Tensor, cache: Any, form: Form) -> tuple[Tensor, Any]:
        """See `RecurrentMixer.mix`; the cache is S and the inputs kept by the convolution."""
        state, kept = (None, None) if cache is None else cache
        inner, states = self.inner, self.states
        z, u, step = self.input(x).split([inner, inner + 2 * states, self.heads], dim=-1)
        u, kept = self.convolution(u, kept)
        u, b, c = u.split([inner, states, states], dim=-1)
        u, step = split_heads(u, self.heads), split_heads(step, self.heads)
        step = softplus(step + self.step_bias[:, None, None])
        log_decay = -self.log_rate.exp()[:, None, None] * step
        y, state = run(form, c.unsqueeze(1), b.unsqueeze(1), step * u, log_decay, state=state)
        y = join_heads(y + self.skip[:, None, None] * u)
        output: Tensor = self.output(self.norm(y * silu(z)))
        return output, (state, kept)

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: S of each head, and the convolution's last inputs."""
        return (self.inner * self.states + self.convolution.kept,)
