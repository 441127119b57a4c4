"""SequenceArchitecture: an architecture defined by its mixer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from torch import nn

from ..api.architecture import Architecture
from ..api.config import Config
from ..api.errors import PluginError
from ..api.prompts import Signature
from .block import SequenceConfig
from .model import SequenceModel


class SequenceArchitecture(Architecture):
    """The harness's sequence model with a plugin's mixer in every block."""

    Config: ClassVar[type[Config]] = SequenceConfig
    replica_args = frozenset({"init_std"})

    @abstractmethod
    def mixer(self, width: int, length: int, causal: bool, config: Any) -> nn.Module:
        """Return a module (B, S, width) → (B, S, width) for S = length positions.

        It may offer `TrainsFaster`, and `ExtendsPositions` for generation with a cache.
        """

    def supports(self, signature: Signature, config: Any) -> str | None:
        """Support every task with prompts of one size, unless the model would see the answers.

        Raises PluginError for a configuration that is not a `SequenceConfig`.
        """
        if not isinstance(config, SequenceConfig):
            raise PluginError(f"{_name(self)}.Config must derive from iclbench.SequenceConfig")
        # Positions are a learned table of one length.
        if signature.varies:
            return "it is built for prompts of one size, and the task has several"
        if signature.causal and not config.causal:
            return "it is not causal, so it would read the answers; set causal=true"
        if config.tied and (signature.target != "token" or signature.reads_one_state):
            return "tied=true is for tasks that ask for a token of each position"
        return None

    def build(self, signature: Signature, config: Any) -> SequenceModel:
        """Return the sequence model with this architecture's mixers.

        Raises PluginError for a mixer that is not a module.
        """
        mixers = [
            self.mixer(config.width, signature.length, config.causal, config)
            for _ in range(config.layers)
        ]
        for mixer in mixers:
            if not isinstance(mixer, nn.Module):
                raise PluginError(f"{_name(self)}.mixer() returned {mixer!r:.60}, not a module")
        return SequenceModel(signature, config, mixers)


def _name(architecture: object) -> str:
    return f"{type(architecture).__module__}.{type(architecture).__name__}"
