"""The form for text as it is trained on a large vocabulary: its logits stay factors."""

from __future__ import annotations

from typing import Any

from torch import nn

from iclbench import FactoredLogits


class FactoredText(nn.Module):
    """A `TextForm` whose logits (B, P, C) are not multiplied out."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prompt: Any) -> FactoredLogits:
        """Return the factors of the logits at the read-outs."""
        return FactoredLogits(self.model.states(prompt), self.model.embedding, None)
