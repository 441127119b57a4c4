"""The looped model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from iclbench import (
    Decoder,
    SequenceModel,
    SeveralPredictions,
    Signature,
    TrainingContext,
)


class LoopedModel(SequenceModel):
    """The harness's sequence model whose blocks run in a loop.

    `blocks` holds those of one loop, or of all loops in order if they share no weights.
    """

    def __init__(self, signature: Signature, config: Any, mixers: list[nn.Module]) -> None:
        super().__init__(signature, config, mixers)
        self.loops, self.injection = config.loops, config.injection
        self.trained_loops = config.trained_loops or config.loops
        self.blocks_per_loop = config.layers

    def forward(self, prompt: Any) -> Any:
        """Return the prediction (B, P, W) after the last loop; in training, those of the last ones.

        In training the first loops run without gradients.
        """
        real, ids = prompt.sequence()
        if not self.training:
            return self._predict(self.hidden(real, ids))
        states = list(self.loop(real, ids))[-self.trained_loops :]
        return SeveralPredictions(tuple(self._predict(state) for state in states))

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """Return the states (B, S, width) after the last loop."""
        *_, states = self.loop(real, ids)
        return states

    def loop(self, real: Tensor, ids: Tensor) -> Iterator[Tensor]:
        """Yield the states (B, S, width) after each loop."""
        prompt = self.embedded(real, ids)
        states = torch.zeros_like(prompt)
        for index in range(self.loops):
            if self.injection or index == 0:
                states = states + prompt
            first = 0 if len(self.blocks) == self.blocks_per_loop else index * self.blocks_per_loop
            for block in self.blocks[first : first + self.blocks_per_loop]:
                states = block(states)
            if self.injection:
                states = self.norm(states)
            if self.training and index < self.loops - self.trained_loops:
                states = states.detach()
            yield states

    def decoder(self) -> Decoder | None:
        """Return None: every loop would need a cache of its own."""
        return None

    def state_sizes(self, length: int) -> tuple[int, ...] | None:
        """See `iclbench.StatesSize`: every loop carries states of its own."""
        sizes = super().state_sizes(length)
        shared = len(self.blocks) == self.blocks_per_loop
        return None if sizes is None else sizes * (self.loops if shared else 1)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`: there is no form that runs only the read-out positions."""
        return None

    def _predict(self, states: Tensor) -> Tensor:
        """Return the prediction (B, P, W) from states (B, S, width)."""
        states = states[:, self.readout_positions]
        prediction: Tensor = self.readout(states if self.injection else self.norm(states))
        return prediction
