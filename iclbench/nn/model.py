"""The harness's sequence model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..api.capabilities import Decoder, ExtendsPositions, StatesSize, TrainingContext, offers
from ..api.prompts import Signature
from .block import Embed, SequenceConfig, initialize, new_block, new_norm
from .fast import FastSequenceModel
from .generation import SequenceDecoder
from .readout import new_readout, read_positions


class SequenceModel(nn.Module):
    """Embedding, learned positions, blocks, norm and read-out.

    Constructions write `embed`, `positions`, `blocks.i.{norm1, mixer, norm2, mlp}`, `norm` and
    `readout`, so these names are public. `positions` is None if the configuration has none.
    """

    def __init__(
        self, signature: Signature, config: SequenceConfig, mixers: list[nn.Module]
    ) -> None:
        super().__init__()
        self.embed = Embed(signature, config.width)
        shape = (signature.length, config.width)
        self.length, learned = signature.length, config.positions == "learned"
        self.positions = nn.Parameter(torch.empty(shape)) if learned else None
        blocks = [new_block(mixer, config) for mixer in mixers]
        self.blocks = nn.ModuleList(blocks)
        self.norm = new_norm(config)
        self.readout = new_readout(signature, config.width)
        self.answers_tokens = signature.target == "token"
        self.readout_positions = read_positions(signature)
        self._has_cache = config.causal and all(_extends(mixer) for mixer in mixers)
        # The mixers have initialized themselves.
        if self.positions is not None:
            nn.init.normal_(self.positions, std=config.init_std)
        for part in (self.embed, self.readout, *(block.mlp for block in blocks)):
            if part is not None:
                initialize(part, config.init_std)
        if config.tied:
            assert self.embed.ids is not None
            self.readout.register_parameter("bias", None)
            # One Parameter under two names, so its gradient is the sum of both uses.
            self.readout.weight = self.embed.ids.weight

    def forward(self, prompt: Any) -> Tensor:
        """Return the prediction (B, P, W) at the signature's read-out positions."""
        states = self.hidden(*prompt.sequence())
        # Selected before the norm and the read-out, which act on every position alone.
        prediction: Tensor = self.readout(self.norm(states[:, self.readout_positions]))
        return prediction

    def embedded(self, real: Tensor, ids: Tensor, start: int = 0) -> Tensor:
        """Return the first block's input (B, S, width) of tokens from position `start` on."""
        x: Tensor = self.embed(real, ids)
        return x if self.positions is None else x + self.positions[start : start + ids.shape[1]]

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """Return the last block's states (B, S, width) of features (B, S, d) and ids (B, S)."""
        x = self.embedded(real, ids)
        for block in self.blocks:
            x = block(x)
        return x

    def decoder(self) -> Decoder | None:
        """Return a decoder with a cache, or None if some mixer has none."""
        return SequenceDecoder(self) if self._has_cache else None

    def state_sizes(self, length: int) -> tuple[int, ...] | None:
        """See `iclbench.StatesSize`: the mixers' states, or None if some mixer does not tell."""
        sizes: list[int] = []
        for block in self.blocks:
            mixer: Any = block.mixer
            of_mixer = mixer.state_sizes(length) if offers(mixer, StatesSize) else None
            if of_mixer is None:
                return None
            sizes += of_mixer
        return tuple(sizes)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """Return the form that computes only read-out positions; None for leading replicas."""
        return None if context.replicas == "leading" else FastSequenceModel(self, context)


def _extends(mixer: Any) -> bool:
    return offers(mixer, ExtendsPositions) and bool(mixer.extends)
