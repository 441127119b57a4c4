"""The harness's sequence model: embedding, positions, blocks, norm, read-out."""

from __future__ import annotations

from typing import Any, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from ..api.config import Config, added_later
from ..api.prompts import Signature
from . import fused
from .generation import Decoder, SequenceDecoder
from .logits import FactoredLogits


class SequenceConfig(Config):
    """The frame that every sequence architecture shares (least_squares, Table D.1)."""

    layers: int = Field(12, ge=1, description="number of blocks")
    width: int = Field(64, ge=1, description="embedding size")
    layer_norm: bool = Field(True, description="LayerNorm before mixer, MLP and read-out")
    mlp: bool = Field(True, description="an MLP with ReLU after each mixer")
    mlp_ratio: int = Field(4, ge=1, description="hidden size of the MLP, in widths")
    causal: bool = Field(True, description="whether position t sees positions <= t only")
    init_std: float = Field(0.02, gt=0, description="standard deviation of initial weights")
    tied: bool = added_later(
        False, description="target token: the read-out is the embedding's table, without bias"
    )


class Embed(nn.Module):
    """Embeds real features (B, S, d) linearly and ids (B, S) by a table; the sum is (B, S, width).

    The public names are `real` and `ids`; one is absent where the signature has no such input.
    """

    def __init__(self, signature: Signature, width: int) -> None:
        super().__init__()
        self.real = nn.Linear(signature.input_width, width) if signature.input_width else None
        self.ids = nn.Embedding(signature.vocabulary, width) if signature.vocabulary else None

    def forward(self, real: Tensor, ids: Tensor) -> Tensor:
        """(B, S, d), (B, S) → (B, S, width)."""
        parts: list[Tensor] = []
        if self.real is not None:
            parts.append(self.real(real))
        if self.ids is not None:
            parts.append(self.ids(ids))
        return sum(parts[1:], parts[0])


class Block(nn.Module):
    """x + mixer(norm1(x)), then x + mlp(norm2(x)); (B, S, width) → (B, S, width)."""

    def __init__(self, mixer: nn.Module, config: SequenceConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.mlp_ratio * config.width
        self.norm1 = _norm(config)
        self.mixer = mixer
        self.norm2 = _norm(config) if config.mlp else None
        self.mlp = (
            nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
            if config.mlp
            else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, width) → (B, S, width)."""
        return self.feed(x + self.mixer(self.norm1(x)))

    def feed(self, x: Tensor) -> Tensor:
        """x + mlp(norm2(x)), where there is an MLP."""
        if self.mlp is None or self.norm2 is None:
            return x
        fed: Tensor = x + self.mlp(self.norm2(x))
        return fed

    def at(self, x: Tensor, positions: slice) -> Tensor:
        """The block's output at some positions alone, (B, S, width) → (B, P, width)."""
        normed = self.norm1(x)
        at = getattr(self.mixer, "at", None)
        mixed = self.mixer(normed)[:, positions] if at is None else at(normed, positions)
        return self.feed(x[:, positions] + mixed)


class SequenceModel(nn.Module):
    """Embedding, learned positions, blocks, norm, read-out.

    `embed`, `positions`, `blocks.i.{norm1, mixer, norm2, mlp}`, `norm` and `readout` are public
    names that constructions write. Training sets `factored`, which has an effect on tokens alone.
    """

    def __init__(
        self, signature: Signature, config: SequenceConfig, mixers: list[nn.Module]
    ) -> None:
        super().__init__()
        self.embed = Embed(signature, config.width)
        self.positions = nn.Parameter(torch.empty(signature.length, config.width))
        blocks = [Block(mixer, config) for mixer in mixers]
        self.blocks = nn.ModuleList(blocks)
        self.norm = _norm(config)
        self.readout = nn.Linear(config.width, signature.output_width)
        self._positions_read = as_slice(signature.readout)
        self._tokens, self.factored = signature.target == "token", False
        self._extends = config.causal and all(getattr(m, "extends", False) for m in mixers)
        # The mixers have initialized themselves.
        nn.init.normal_(self.positions, std=config.init_std)
        for frame in (self.embed, self.readout, *(block.mlp for block in blocks)):
            if frame is not None:
                initialize(frame, config.init_std)
        if config.tied:
            assert self.embed.ids is not None
            self.readout.register_parameter("bias", None)
            self.readout.weight = self.embed.ids.weight

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """The last layer's states, (B, S, width), of real (B, S, d) and ids (B, S)."""
        x = self._embedded(real, ids)
        for block in self.blocks:
            x = block(x)
        return x

    def _embedded(self, real: Tensor, ids: Tensor) -> Tensor:
        whole = ids.shape[1] == len(self.positions)  # then a slice, and its gradient, is saved
        x: Tensor = self.embed(real, ids)
        return x + (self.positions if whole else self.positions[: ids.shape[1]])

    def forward(self, prompt: Any) -> Tensor | FactoredLogits:
        """The prediction (B, P, W) at the signature's read-out positions.

        The logits of tokens are left as factors where `factored` is set.
        """
        real, ids = prompt.sequence()
        if self._saves_work():
            x = self._embedded(real, ids)
            for block in self.blocks[:-1]:
                x = block(x)
            states = cast(Block, self.blocks[-1]).at(x, cast(slice, self._positions_read))
        else:
            states = self.hidden(real, ids)[:, self._positions_read]
        states = self.norm(states)
        if self.factored and self._tokens:
            return FactoredLogits(states, self.readout.weight, self.readout.bias)
        prediction: Tensor = self.readout(states)
        return prediction

    def decoder(self) -> Decoder | None:
        """A decoder that keeps what the mixers know of earlier positions, if all of them can."""
        return SequenceDecoder(self) if self._extends else None

    def _saves_work(self) -> bool:
        """Whether the last block may be computed at the read-out positions alone.

        In training only, so that what is evaluated stays as it is to the last bit, and not where
        someone watches the block.
        """
        if not self.training or not isinstance(self._positions_read, slice):
            return False
        return not fused.watched(self.blocks[-1])


def as_slice(positions: tuple[int, ...]) -> slice | list[int]:
    """The positions as a slice where they are evenly spaced: no index has to be moved to a GPU."""
    first, last = positions[0], positions[-1]
    step = positions[1] - first if len(positions) > 1 else 1
    if step > 0 and positions == tuple(range(first, last + 1, step)):
        return slice(first, last + 1, step)
    return list(positions)


def initialize(module: nn.Module, std: float) -> None:
    """GPT-2's initialization: weights of linear layers and tables N(0, std²), biases 0.

    The frame is initialized so; a mixer initializes itself, with this or in its own way.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


def _norm(config: SequenceConfig) -> nn.Module:
    return nn.LayerNorm(config.width) if config.layer_norm else nn.Identity()
