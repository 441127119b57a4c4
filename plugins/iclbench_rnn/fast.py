"""The training form of recurrent stacks: torch's fused operators, which can't be vmapped."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class FusedStack(nn.Module):
    """All layers and positions as one operator, equal to the stack except for rounding."""

    def __init__(self, stack: Any) -> None:
        super().__init__()
        self.stack = stack

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        stack = self.stack
        start = x.new_zeros(stack.layers, len(x), stack.width)
        weights = []
        for layer in range(stack.layers):
            weight, bias, recurrent, recurrent_bias = stack.weights(layer)
            weights += [weight, recurrent, bias, recurrent_bias]
        # As torch.nn.LSTM: biases, layers, dropout, training, both directions, batch first.
        options = (True, stack.layers, 0.0, self.training, False, True)
        if stack.parts == 2:
            states: Tensor = torch.lstm(x, (start, start), weights, *options)[0]
        else:
            states = torch.gru(x, start, weights, *options)[0]
        return states
