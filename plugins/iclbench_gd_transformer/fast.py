"""The form for text in training on a large vocabulary: its logits stay factored."""

from __future__ import annotations

from typing import Any

from torch import nn

from iclbench import FactoredLogits


class FactoredText(nn.Module):
    """A `TextForm` that returns its logits (B, P, C) as factors."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prompt: Any) -> FactoredLogits:
        """Return the factors of the logits at the read-outs."""
        return FactoredLogits(self.model.states(prompt), self.model.embedding, None)
