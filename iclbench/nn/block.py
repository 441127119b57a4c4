"""The parts of the harness's sequence model: its configuration, the embedding, a block."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor, nn

from ..api.config import Config, added_later
from ..api.prompts import Signature


class SequenceConfig(Config):
    """Options shared by all sequence architectures (least_squares, Table D.1)."""

    layers: int = Field(12, ge=1, description="number of blocks")
    width: int = Field(64, ge=1, description="embedding size")
    layer_norm: bool = Field(True, description="LayerNorm before mixer, MLP and read-out")
    mlp: bool = Field(True, description="an MLP with ReLU after each mixer")
    mlp_ratio: int = Field(4, ge=1, description="hidden size of the MLP, in widths")
    causal: bool = Field(True, description="whether position t sees positions <= t only")
    init_std: float = Field(0.02, gt=0, description="standard deviation of initial weights")
    tied: bool = added_later(
        False, description="target token: use the embedding table as read-out, without bias"
    )


class Embed(nn.Module):
    """Embed real features (B, S, d) linearly and ids (B, S) by a table; the sum is (B, S, width).

    The public names are `real` and `ids`. Either is None if the signature has no such input.
    """

    def __init__(self, signature: Signature, width: int) -> None:
        super().__init__()
        self.real = nn.Linear(signature.input_width, width) if signature.input_width else None
        self.ids = nn.Embedding(signature.vocabulary, width) if signature.vocabulary else None

    def forward(self, real: Tensor, ids: Tensor) -> Tensor:
        """Map (B, S, d) and (B, S) to (B, S, width)."""
        parts: list[Tensor] = []
        if self.real is not None:
            parts.append(self.real(real))
        if self.ids is not None:
            parts.append(self.ids(ids))
        return sum(parts[1:], parts[0])


class Block(nn.Module):
    """x + mixer(norm1(x)), then x + mlp(norm2(x)); (B, S, width) → (B, S, width)."""

    def __init__(
        self, norm1: nn.Module, mixer: nn.Module, norm2: nn.Module | None, mlp: nn.Module | None
    ) -> None:
        super().__init__()
        self.norm1, self.mixer, self.norm2, self.mlp = norm1, mixer, norm2, mlp

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        return self.feed(x + self.mixer(self.norm1(x)))

    def feed(self, x: Tensor) -> Tensor:
        """x + mlp(norm2(x)); x itself if there is no MLP."""
        if self.mlp is None or self.norm2 is None:
            return x
        fed: Tensor = x + self.mlp(self.norm2(x))
        return fed


def new_block(mixer: nn.Module, config: SequenceConfig) -> Block:
    """A block of a mixer, with the norms and the MLP that the configuration asks for."""
    width, hidden = config.width, config.mlp_ratio * config.width
    norm1 = new_norm(config)
    if not config.mlp:
        return Block(norm1, mixer, None, None)
    mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
    return Block(norm1, mixer, new_norm(config), mlp)


def new_norm(config: SequenceConfig) -> nn.Module:
    """LayerNorm, or the identity."""
    return nn.LayerNorm(config.width) if config.layer_norm else nn.Identity()


def initialize(module: nn.Module, std: float) -> None:
    """Initialize as GPT-2 does: weights of linear layers and tables N(0, std²), biases 0.

    The model initializes embedding, MLPs and read-out so. A mixer initializes itself, with this
    function or in its own way.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
