"""Parts of the harness's sequence model: its configuration, the embedding, and a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from ..api.config import Config, added_later
from ..api.errors import PluginError
from ..api.prompts import Signature


class SequenceConfig(Config):
    """Options shared by all sequence architectures (Liu et al. 2025, Table D.1)."""

    layers: int = Field(12, ge=1, description="number of blocks")
    width: int = Field(64, ge=1, description="embedding size")
    layer_norm: bool = Field(True, description="LayerNorm before mixer, MLP and read-out")
    mlp: bool = Field(True, description="a ReLU MLP after each mixer")
    mlp_ratio: int = Field(
        4, ge=1, description="hidden size of the MLP, as a multiple of the width"
    )
    causal: bool = Field(
        True, description="whether a position sees only itself and earlier positions"
    )
    init_std: float = Field(0.02, gt=0, description="standard deviation of initial weights")
    tied: bool = added_later(
        False,
        description="for tasks that ask for tokens: use the embedding table as the read-out, "
        "without bias",
    )
    positions: Literal["learned", "none"] = added_later(
        "learned",
        description="a learned vector for each position, or none; without them, a model also takes "
        "longer prompts than those of training, unless its mixer is built for one length",
    )

    @model_validator(mode="after")
    def _has_an_mlp_of_that_size(self) -> Self:
        if not self.mlp and self.mlp_ratio != 4:
            raise ValueError("mlp_ratio needs mlp=true")
        return self

    @classmethod
    def among(cls, values: Mapping[str, Any]) -> SequenceConfig:
        """Return the options of all sequence architectures, from a longer configuration.

        `values` holds that configuration's values by name.
        """
        return SequenceConfig(**{name: values[name] for name in SequenceConfig.model_fields})


class Embed(nn.Module):
    """The sum of a linear map of features (B, S, d) and a table of ids (B, S): (B, S, width).

    The parts `real` and `ids` are public names. A part is None if the signature lacks its input.
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
        # Starting with the first part, since sum would start with the integer 0.
        return sum(parts[1:], parts[0])


class Block(nn.Module):
    """Add mixer(norm1(x)) to x, then mlp(norm2(x)): (B, S, width) → (B, S, width)."""

    def __init__(
        self, norm1: nn.Module, mixer: nn.Module, norm2: nn.Module | None, mlp: nn.Module | None
    ) -> None:
        super().__init__()
        self.norm1, self.mixer, self.norm2, self.mlp = norm1, mixer, norm2, mlp

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width); raises PluginError for a mixer that does not."""
        # Norms come before the mixer and the MLP, so the stream itself stays unnormalized.
        mixed = self.mixer(self.norm1(x))
        if not isinstance(mixed, Tensor) or mixed.shape != x.shape:
            what = tuple(mixed.shape) if isinstance(mixed, Tensor) else f"a {type(mixed).__name__}"
            name = type(self.mixer).__name__
            raise PluginError(f"the mixer {name} returned {what} for {tuple(x.shape)}")
        return self.feed(x + mixed)

    def feed(self, x: Tensor) -> Tensor:
        """Return x + mlp(norm2(x)), or x if there is no MLP."""
        if self.mlp is None or self.norm2 is None:
            return x
        output: Tensor = x + self.mlp(self.norm2(x))
        return output


def new_block(mixer: nn.Module, config: SequenceConfig) -> Block:
    """Return a block with this mixer and the configuration's norms and MLP."""
    width, hidden = config.width, config.mlp_ratio * config.width
    norm1 = new_norm(config)
    if not config.mlp:
        return Block(norm1, mixer, None, None)
    mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
    return Block(norm1, mixer, new_norm(config), mlp)


def new_norm(config: SequenceConfig) -> nn.Module:
    """Return LayerNorm, or the identity if the configuration has none."""
    return nn.LayerNorm(config.width) if config.layer_norm else nn.Identity()


def initialize(module: nn.Module, std: float) -> None:
    """Initialize like GPT-2: weights of linear layers and tables from N(0, std²), biases 0.

    Unlike GPT-2, it does not divide the outputs of residual branches by √(2 · layers).

    The model does this for its embedding, MLPs and read-out. A mixer initializes itself, with this
    function or otherwise.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
