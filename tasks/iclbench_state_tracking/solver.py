"""The solver `group-product`."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn.functional import one_hot

from iclbench import Config, Signature, Solver, Text

from .groups import order
from .products import prefix_products


class ProductConfig(Config):
    """The group, which a signature does not name."""

    group: str = Field("parity", description="group of the task word-problem")

    @field_validator("group")
    @classmethod
    def _is_known(cls, group: str) -> str:
        order(group)
        return group


class GroupProduct(Solver):
    """Multiplies the elements exactly: accuracy 1 at every length."""

    name = "group-product"
    Config = ProductConfig

    def supports(self, signature: Signature, config: ProductConfig) -> str | None:
        """It needs a text whose ids are the group's elements, read at every position."""
        size = order(config.group)
        every = signature.readout == tuple(range(signature.length))
        if signature.prompt is not Text or signature.target != "token" or not every:
            return "it multiplies the ids of a text, and needs a task that asks at every position"
        if signature.vocabulary != size:
            return f"{config.group} has {size} elements and the task {signature.vocabulary} ids"
        return None

    def build(self, signature: Signature, config: ProductConfig) -> nn.Module:
        """A module without parameters."""
        return _ProductModule(config.group)


class _ProductModule(nn.Module):
    def __init__(self, group: str) -> None:
        super().__init__()
        self.group, self.size = group, order(group)
        self.dtype = torch.get_default_dtype()

    def forward(self, prompt: Any) -> Tensor:
        """Log-probabilities (B, T, G)."""
        products = prefix_products(prompt.ids, self.group)
        probabilities = one_hot(products, self.size).to(self.dtype)
        # Not −∞: a prediction must be finite.
        return probabilities.clamp(min=torch.finfo(self.dtype).tiny).log()
