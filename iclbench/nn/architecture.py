"""SequenceArchitecture: the harness's sequence model with a plugin's mixer in every block."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from torch import nn

from ..api.architecture import Architecture
from ..api.config import Config
from ..api.prompts import Signature
from .model import SequenceConfig, SequenceModel


class SequenceArchitecture(Architecture):
    """A sequence model of the harness with the plugin's mixer in every block."""

    Config: ClassVar[type[Config]] = SequenceConfig
    replica_args = frozenset({"init_std"})

    @abstractmethod
    def mixer(self, width: int, length: int, causal: bool, config: Any) -> nn.Module:
        """A module (B, S, width) → (B, S, width) for S = length positions.

        It may offer `at(x, positions)`, its output (B, P, width) at a slice of the positions alone:
        in training that is all that the last block computes.
        """

    def supports(self, signature: Signature, config: Any) -> str | None:
        """Any prompt can be embedded; a non-causal model must not see the answers."""
        if signature.varies:
            return "it is built for one size of prompts, and the task has several"
        if signature.causal and not config.causal:
            return "it is not causal, so it would read the answers; set causal=true"
        if config.tied and signature.target != "token":
            return "tied=true is for tasks that ask for a token"
        return None

    def build(self, signature: Signature, config: Any) -> SequenceModel:
        """The model of this architecture's mixers for `signature`."""
        mixers = [
            self.mixer(config.width, signature.length, config.causal, config)
            for _ in range(config.layers)
        ]
        return SequenceModel(signature, config, mixers)
