"""The training form of the sequence model: the last block only where its output is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from ..api.capabilities import TrainingContext
from .block import Block
from .logits import FactoredLogits, factors_logits
from .readout import held_on
from .training_form import training_form


class FastSequenceModel(nn.Module):
    """A `SequenceModel` with the training forms of its mixers, equal except for rounding.

    It returns `FactoredLogits` for target `token` if the context allows them.
    """

    def __init__(self, model: Any, context: TrainingContext) -> None:
        super().__init__()
        self.embed, self.positions, self.length = model.embed, model.positions, model.length
        self.norm, self.readout = model.norm, model.readout
        self.factored = factors_logits(model, context)
        self.readout_positions = model.readout_positions
        # Mixers return states: only this model may factor its logits.
        context = replace(context, length=model.length, factored_logits=False)
        blocks: list[nn.Module] = [fast_block(block, context) for block in model.blocks[:-1]]
        last = model.blocks[-1]
        if isinstance(self.readout_positions, slice):
            blocks.append(LastBlock(last, context, self.readout_positions))
        else:
            positions = held_on(context.device, self.readout_positions)
            blocks.append(CutBlock(fast_block(last, context), positions))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, prompt: Any) -> Tensor | FactoredLogits:
        """Return the prediction (B, P, W) at the signature's read-out positions."""
        real, ids = prompt.sequence()
        x, length, positions = self.embed(real, ids), ids.shape[1], self.positions
        if positions is not None:
            # Slicing would copy the gradient, so skip it at full length.
            x = x + (positions if length == self.length else positions[:length])
        for block in self.blocks:
            x = block(x)
        # Already at the read-outs only: the last block has selected them.
        states = self.norm(x)
        if self.factored:
            return FactoredLogits(states, self.readout.weight, self.readout.bias)
        prediction: Tensor = self.readout(states)
        return prediction


def fast_block(block: Block, context: TrainingContext) -> Block:
    """Return the block with its mixer's training form."""
    mixer = training_form(block.mixer, context)
    assert mixer is not None
    return Block(block.norm1, mixer, block.norm2, block.mlp)


class LastBlock(nn.Module):
    """A block's output at a slice of the positions, (B, S, width) → (B, P, width)."""

    def __init__(self, block: Block, context: TrainingContext, positions: slice) -> None:
        super().__init__()
        self.positions = positions
        mixer = training_form(block.mixer, replace(context, positions=positions))
        # First with all positions, for the case that the mixer has no form for some of them.
        self.block = fast_block(block, context)
        # A mixer without a form for some positions computes all of them.
        self.mixes_all = mixer is None
        if mixer is not None:
            self.block.mixer = mixer

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, P, width)."""
        block = self.block
        mixed = block.mixer(block.norm1(x))
        if self.mixes_all:
            mixed = mixed[:, self.positions]
        return block.feed(x[:, self.positions] + mixed)


class CutBlock(nn.Module):
    """A block computed at all positions, and its output at some that are not evenly spaced."""

    def __init__(self, block: nn.Module, positions: slice | Tensor) -> None:
        super().__init__()
        self.block, self.positions = block, positions

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, P, width)."""
        states: Tensor = self.block(x)[:, self.positions]
        return states
