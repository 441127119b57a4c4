"""What recurrent mixers share: the two forms, heads, the short convolution, and initial values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from iclbench import TrainingContext

#: A form of a recurrence: the inputs and a state → the outputs and the last state.
Form = Callable[..., tuple[Tensor, Tensor]]
#: Taps of the short convolutions, as in all papers.
TAPS = 4


class RecurrentMixer(nn.Module):
    """A causal mixer (B, S, width) → (B, S, width) with a state, in two forms of one equation.

    `chunked` computes all positions from products of matrices, `recurrent` one after the other.
    """

    #: See `iclbench.ExtendsPositions`. The cache holds the state and the convolutions' last inputs.
    extends = True
    recurrent: Form
    chunked: Form
    output: nn.Linear
    #: The name in `kernels.KERNELS` of the kernel for `chunked`; empty if there is none.
    kernel = ""
    #: Whether training on a GPU uses the kernel.
    uses_kernel = False
    #: The most positions for which `recurrent` is faster than `chunked` on a CPU.
    short = 0

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        return self.mix(x, None, self.chunked)[0]

    def extend(self, x: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Map (B, t, width) to (B, t, width) at the positions that follow those in the cache."""
        return self.mix(x, cache, self.recurrent if x.shape[1] == 1 else self.chunked)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`: the recurrence on a CPU, or the kernel on a GPU."""
        if self.uses_kernel:
            from .kernels import kernel_mixer

            return kernel_mixer(self, context)
        is_short = context.length is not None and context.length <= self.short
        if not is_short or context.device.type != "cpu" or context.replicas == "leading":
            return None
        return RecurrentForm(self, context.positions)

    def mix(self, x: Tensor, cache: Any, form: Form) -> tuple[Tensor, Any]:
        """Map (B, t, width) and a cache, None at first, to (B, t, width) and the next cache."""
        raise NotImplementedError

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`; it is the same for all lengths."""
        raise NotImplementedError


class RecurrentForm(nn.Module):
    """A mixer that computes one position after the other, for training on short sequences."""

    def __init__(self, mixer: RecurrentMixer, positions: slice | None) -> None:
        super().__init__()
        self.mixer, self.positions = mixer, positions

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width), or to the positions that are asked for."""
        y = self.mixer.mix(x, None, self.mixer.recurrent)[0]
        return y if self.positions is None else y[:, self.positions]


class ShortConvolution(nn.Module):
    """SiLU of a causal convolution over the last `TAPS` positions, channel by channel.

    `taps` (TAPS, channels) begin with the oldest position.
    """

    def __init__(self, channels: int, *, bias: bool = False) -> None:
        super().__init__()
        # The initial taps of torch's own convolutions.
        bound = TAPS**-0.5
        self.taps = nn.Parameter(torch.empty(TAPS, channels).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    @property
    def kept(self) -> int:
        """The number of inputs, over all channels, that it keeps for later positions."""
        return self.taps[1:].numel()

    def forward(self, x: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map (B, S, channels) and the inputs before it, None for 0, to the output and the last."""
        length = x.shape[1]
        if before is None:
            before = torch.zeros_like(x[:, :1]).expand(-1, TAPS - 1, -1)
        x = torch.cat([before, x], dim=1)
        # Shifts instead of torch's convolution, which is slow for one channel per group.
        convolved = self.taps[0] * x[:, :length]
        for i in range(1, TAPS):
            convolved = convolved + self.taps[i] * x[:, i : i + length]
        if self.bias is not None:
            convolved = convolved + self.bias
        return silu(convolved), x[:, length:]


class HeadNorm(nn.Module):
    """Divide each head's output (…, d) by its root mean square, times a learned `weight` (d,)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, d) to (…, d)."""
        return x * (x.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt() * self.weight


def run(form: Form, *inputs: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return a form's outputs and state, computed in float32 from inputs of a lower dtype."""
    dtype = torch.float32
    for tensor in inputs:
        dtype = torch.promote_types(dtype, tensor.dtype)
    # Products of decays and the state itself need more digits than autocast's dtypes have.
    with torch.autocast(inputs[0].device.type, enabled=False):
        return form(*(tensor.to(dtype) for tensor in inputs), state=state)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Map (B, S, heads · d) to (B, heads, S, d)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Map (B, heads, S, d) to (B, S, heads · d)."""
    return x.transpose(1, 2).flatten(2)


def project(width_in: int, width_out: int, init_std: float, *, bias: bool = False) -> nn.Linear:
    """Return a linear layer with weights from N(0, init_std²) and bias 0."""
    linear = nn.Linear(width_in, width_out, bias=bias)
    nn.init.normal_(linear.weight, std=init_std)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


def step_bias(count: int) -> Tensor:
    """Return biases (count,) whose softplus is log-uniform in [0.001, 0.1], as in Mamba."""
    low, high = math.log(1e-3), math.log(0.1)
    steps = (low + (high - low) * torch.rand(count)).exp()
    # The inverse of softplus.
    return steps + (-(-steps).expm1()).log()
