"""Models made of an embedding, any causal backbone, and a read-out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from ..api.architecture import Architecture
from ..api.capabilities import Decoder, ExtendsPositions, StatesSize, TrainingContext, offers
from ..api.config import Config
from ..api.prompts import Signature
from .block import Embed, initialize
from .generation import BackboneDecoder
from .logits import FactoredLogits, factors_logits
from .readout import held_on, new_readout, read_positions
from .training_form import training_form


class BackboneConfig(Config):
    """Options shared by all backbones."""

    layers: int = Field(12, ge=1, description="number of layers")
    width: int = Field(64, ge=1, description="size of embeddings and states")
    init_std: float = Field(0.02, gt=0, description="standard deviation of initial weights")


class BackboneArchitecture(Architecture):
    """A whole network between the harness's embedding and read-out: its own norms and positions."""

    Config: ClassVar[type[Config]] = BackboneConfig
    replica_args = frozenset({"init_std"})

    @abstractmethod
    def backbone(self, length: int, config: Any) -> nn.Module:
        """Return a causal module (B, S, width) → (B, S, width) for up to `length` positions.

        It may offer `StatesSize`, `TrainsFaster` (never for `positions`), and `ExtendsPositions`
        for generation with a cache.
        """

    def supports(self, signature: Signature, config: Any) -> str | None:
        """Support every task with prompts of one size."""
        # The embedding is a linear map of features of one width.
        if signature.varies:
            return "it is built for prompts of one size, and the task has several"
        return None

    def build(self, signature: Signature, config: Any) -> nn.Module:
        """Return the embedding, the backbone and the read-out."""
        backbone = self.backbone(signature.length, config)
        return BackboneModel(signature, backbone, config.width, config.init_std)


class BackboneModel(nn.Module):
    """The read-out of backbone(embed(prompt)).

    Its parts `embed`, `backbone` and `readout` are public names. The backbone has initialized
    itself.
    """

    def __init__(
        self, signature: Signature, backbone: nn.Module, width: int, init_std: float
    ) -> None:
        super().__init__()
        self.embed, self.backbone = Embed(signature, width), backbone
        self.readout = new_readout(signature, width)
        self.length, self.answers_tokens = signature.length, signature.target == "token"
        self.readout_positions = read_positions(signature)
        for part in (self.embed, self.readout):
            initialize(part, init_std)

    def forward(self, prompt: Any) -> Tensor:
        """Return the prediction (B, P, W) at the signature's read-out positions."""
        states = self.hidden(*prompt.sequence())
        prediction: Tensor = self.readout(states[:, self.readout_positions])
        return prediction

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """Return the backbone's states (B, S, width) of features (B, S, d) and ids (B, S)."""
        states: Tensor = self.backbone(self.embed(real, ids))
        return states

    def decoder(self) -> Decoder | None:
        """Return a decoder with the backbone's cache, or None if it has none."""
        backbone: Any = self.backbone
        extends = offers(backbone, ExtendsPositions) and backbone.extends
        return BackboneDecoder(self) if extends else None

    def state_sizes(self, length: int) -> tuple[int, ...] | None:
        """See `iclbench.StatesSize`: the backbone's, or None if it does not tell."""
        backbone: Any = self.backbone
        sizes: tuple[int, ...] | None = None
        if offers(backbone, StatesSize):
            sizes = backbone.state_sizes(length)
        return sizes

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`; None for leading replicas."""
        return None if context.replicas == "leading" else FastBackboneModel(self, context)


class FastBackboneModel(nn.Module):
    """A `BackboneModel` with the backbone's form for training, and factored logits."""

    readout: Any

    def __init__(self, model: BackboneModel, context: TrainingContext) -> None:
        super().__init__()
        self.embed, self.readout = model.embed, model.readout
        self.readout_positions = held_on(context.device, model.readout_positions)
        self.factored = factors_logits(model, context)
        context = replace(context, length=model.length, factored_logits=False)
        backbone = training_form(model.backbone, context)
        assert backbone is not None
        self.backbone = backbone

    def forward(self, prompt: Any) -> Tensor | FactoredLogits:
        """Return the prediction (B, P, W) at the signature's read-out positions."""
        states = self.backbone(self.embed(*prompt.sequence()))[:, self.readout_positions]
        if self.factored:
            return FactoredLogits(states, self.readout.weight, self.readout.bias)
        prediction: Tensor = self.readout(states)
        return prediction
