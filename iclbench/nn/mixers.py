"""Mixers by name: those of all registered sequence architectures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import nn

from ..api.config import parse_config
from ..api.errors import PluginError, UsageError, unknown
from ..plugins import host
from .architecture import SequenceArchitecture
from .block import SequenceConfig


class NamedMixer(NamedTuple):
    """A registered architecture whose mixer another model uses, with its configuration."""

    architecture: SequenceArchitecture
    config: Any

    def make(self, length: int) -> nn.Module:
        """Return a new mixer for `length` positions, (B, S, width) → (B, S, width)."""
        config = self.config
        return self.architecture.mixer(config.width, length, config.causal, config)

    def arguments(self) -> dict[str, Any]:
        """Return the mixer's own arguments with their defaults."""
        values: dict[str, Any] = self.config.model_dump(mode="json")
        return {k: v for k, v in values.items() if k not in SequenceConfig.model_fields}


def find_mixer(name: str, shared: SequenceConfig, args: Mapping[str, Any]) -> NamedMixer:
    """Return the mixer of this name, with its own `args` and the `shared` ones of all blocks.

    A mixer has the name of its architecture, or the one that the architecture's `Entry` gives it.
    Raises UsageError for an unknown name or argument, and for a model that has no mixer.
    """
    models = _models()
    if name not in models:
        raise unknown("mixer", name, [n for n in models if _has_mixer(models[n][0])])
    if len(models[name]) > 1:
        raise PluginError(f"several models provide the mixer {name!r}: {', '.join(models[name])}")
    architecture = host().load("model", models[name][0], object)()
    if not isinstance(architecture, SequenceArchitecture):
        raise UsageError(f"model {name!r} has no mixer: it is not a sequence architecture")
    common = {key: getattr(shared, key) for key in SequenceConfig.model_fields}
    for key in args:
        if key in common:
            raise UsageError(f"mixer {name}: {key} is an argument of the whole model; set it there")
    return NamedMixer(
        architecture, parse_config(architecture.Config, {**common, **args}, f"mixer {name}")
    )


def _has_mixer(model: str) -> bool:
    """Whether a model is a sequence architecture; one that can't be loaded is none."""
    try:
        return issubclass(host().load("model", model, object), SequenceArchitecture)
    except UsageError:
        return False


def _models() -> dict[str, list[str]]:
    """The models by the names of their mixers; whether they have one shows when they are loaded."""
    names: dict[str, list[str]] = {}
    for _, entry in host().entries("model"):
        for name in {entry.name, entry.mixer} - {""}:
            names.setdefault(name, []).append(entry.name)
    return names
