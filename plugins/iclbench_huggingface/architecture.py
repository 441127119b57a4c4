"""The architecture `huggingface`: a causal model of transformers between embedding and read-out."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

from pydantic import Field, model_validator
from torch import nn

from iclbench import BackboneArchitecture, BackboneConfig, Signature

from .pretrained import Pretrained


class HuggingFaceConfig(BackboneConfig):
    """GPT-2 in the sizes of the harness's transformer."""

    config: str = Field("gpt2", description="a model type of transformers, such as gpt2 or llama")
    heads: int = Field(1, ge=1, description="number of attention heads, if the model type has any")
    attention: Literal["eager", "sdpa"] = Field(
        "eager",
        description="implementation of attention: explicit matrix products, or torch's "
        "scaled_dot_product_attention",
    )
    settings: dict[str, Any] = Field(
        {}, description="further fields of the model's config, as transformers names them"
    )

    @model_validator(mode="after")
    def _heads_divide_width(self) -> HuggingFaceConfig:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {self.width}")
        return self


class HuggingFace(BackboneArchitecture):
    """A causal model of transformers, built at random or with the weights of a folder."""

    name = "huggingface"
    Config = HuggingFaceConfig
    constructions = {"pretrained": Pretrained()}

    def supports(self, signature: Signature, config: HuggingFaceConfig) -> str | None:
        """Support every task with prompts of one size, if transformers is installed.

        Raises UsageError for an unknown type or field, and for values that the type refuses.
        """
        if importlib.util.find_spec("transformers") is None:
            return "it needs transformers: pip install 'iclbench[huggingface]'"
        # Importing transformers takes seconds, and the default type takes all sizes.
        if config.config != "gpt2" or config.settings:
            from .configs import config_of

            config_of(signature.length, config)
        return super().supports(signature, config)

    def backbone(self, length: int, config: HuggingFaceConfig) -> nn.Module:
        """Return the model's layers, (B, S, width) → (B, S, width); raises UsageError."""
        from .backbone import TransformersBackbone, layers_of
        from .configs import config_of

        return TransformersBackbone(layers_of(config_of(length, config), config.attention), length)
