"""Stacks of LSTM and GRU layers, position after position.

Parameters have the names and shapes of `torch.nn.LSTM` and `torch.nn.GRU`, which can't be used
themselves: they have no rule for vmap, and hide their weights from `functional_call`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from iclbench import TrainingContext

from .fast import FusedStack


class RecurrentStack(nn.Module):
    """Layers of one kind, each on the states of the one below: (B, S, width) → (B, S, width).

    `weight_ih_lN`, `weight_hh_lN` (gates · width, width) and the biases `bias_ih_lN`, `bias_hh_lN`.
    """

    #: See `iclbench.ExtendsPositions`. The cache is (layers, parts of the state, B, width).
    extends = True
    #: The gates of a layer, and the tensors (B, width) of its state.
    gates: ClassVar[int]
    parts: ClassVar[int]

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers, self.width = layers, width
        bound = width**-0.5  # as in torch
        for layer in range(layers):
            for source in ("ih", "hh"):
                for name, shape in (("weight", (width,)), ("bias", ())):
                    values = torch.empty(self.gates * width, *shape).uniform_(-bound, bound)
                    setattr(self, f"{name}_{source}_l{layer}", nn.Parameter(values))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        return self.extend(x, None)[0]

    def extend(self, x: Tensor, cache: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map (B, t, width) to (B, t, width) from the states in the cache, zeros for None."""
        states = []
        for layer in range(self.layers):
            weights, recurrent = self.weights(layer)[:2], self.weights(layer)[2:]
            # The inputs of all positions at once; only the state has to wait for the one before.
            inputs = linear(x, *weights).unbind(dim=1)
            zeros = torch.zeros_like(x[:, 0])
            state = (zeros,) * self.parts if cache is None else tuple(cache[layer].unbind())
            outputs = []
            for gates in inputs:
                state = self.step(gates, linear(state[0], *recurrent), state)
                outputs.append(state[0])
            x = torch.stack(outputs, dim=1)
            states.append(torch.stack(state))
        return x, torch.stack(states)

    @abstractmethod
    def step(
        self, inputs: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """Return the next state, whose first part is the output.

        `inputs` and `recurrent` (B, gates · width) are the linear maps of the input and the output
        before.
        """

    def weights(self, layer: int) -> list[Tensor]:
        """Return the weight and bias of the input, and those of the state before."""
        return [
            getattr(self, f"{name}_{source}_l{layer}")
            for source in ("ih", "hh")
            for name in ("weight", "bias")
        ]

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`."""
        return (self.parts * self.width,) * self.layers

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`: torch's fused operator, on a CPU."""
        fused = context.takes_any_operator and context.device.type == "cpu"
        if context.replicas == "leading" or not fused or context.autocast is not None:
            return None
        return FusedStack(self)


class LSTMStack(RecurrentStack):
    """i, f, o = σ(…), g = tanh(…); c ← f ⊙ c + i ⊙ g, h ← o ⊙ tanh(c)."""

    gates, parts = 4, 2

    def step(
        self, inputs: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """See `RecurrentStack.step`; the state is (h, c)."""
        i, f, g, o = (inputs + recurrent).chunk(4, dim=-1)
        cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


class GRUStack(RecurrentStack):
    """r, z = σ(…), n = tanh(W x + b + r ⊙ (U h + c)); h ← (1 − z) ⊙ n + z ⊙ h."""

    gates, parts = 3, 1

    def step(
        self, inputs: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """See `RecurrentStack.step`; the state is (h,)."""
        (r, z, n), (r_h, z_h, n_h) = inputs.chunk(3, dim=-1), recurrent.chunk(3, dim=-1)
        reset, update = (r + r_h).sigmoid(), (z + z_h).sigmoid()
        candidate = (n + reset * n_h).tanh()
        return (candidate + update * (state[0] - candidate),)
