"""The form for text in training on a large vocabulary: its logits stay factored."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from iclbench import FactoredLogits, TrainingContext


class FactoredText(nn.Module):
    """A `TextForm` that returns its logits (B, P, C) as factors."""

    def __init__(self, model: Any, context: TrainingContext) -> None:
        super().__init__()
        self.model, self.readout = model, model.readout
        if not isinstance(self.readout, slice):
            # Indexing by a list would copy the list to the GPU, and wait, at every step.
            self.readout = torch.tensor(self.readout, device=context.device)

    def forward(self, prompt: Any) -> FactoredLogits:
        """Return the factors of the logits at the read-outs."""
        states = self.model.answer(self.model.functions(prompt.ids)[:, self.readout])
        return FactoredLogits(states, self.model.embedding, None)
