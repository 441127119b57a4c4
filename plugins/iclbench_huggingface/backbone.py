"""Layers of a model of transformers as a backbone."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel

from iclbench import UsageError

from .configs import built, reason_of


def layers_of(config: Any, attention: str) -> Any:
    """Return a model of this configuration with random weights and no table of ids.

    Raises UsageError for a configuration that transformers can't build, or whose model can't read
    embeddings.
    """
    model = built(
        AutoModel.from_config,
        config,
        attn_implementation=attention,
        dtype=torch.get_default_dtype(),
    )
    # The harness embeds: a table would be a parameter without a gradient.
    built(model.set_input_embeddings, nn.Identity())
    return without_pooler(model)


def without_pooler(model: Any) -> Any:
    """Return the model without the layer that encoders end in, and only classifiers use."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model


class TransformersBackbone(nn.Module):
    """A model's last states, (B, S, width) → (B, S, width)."""

    def __init__(self, model: Any, length: int) -> None:
        super().__init__()
        self.model = model
        self.width: int = model.config.hidden_size
        # Configurations that can't work show it only when they are used.
        example = (1, length, self.width)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            try:
                shape = tuple(self(torch.zeros(example)).shape)
            except Exception as error:
                reason = reason_of(error)
                raise UsageError(
                    f"huggingface: {model.config.model_type} refuses the prompt of {length} "
                    f"positions: {reason}"
                ) from error
        if shape != example:
            raise UsageError(f"huggingface: {model.config.model_type} maps {example} to {shape}")
        if reads_ahead(model, length):
            raise UsageError(
                f"huggingface: this {model.config.model_type} is not causal: later inputs change "
                "its earlier outputs"
            )

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        states: Tensor = self.model(inputs_embeds=x, use_cache=False).last_hidden_state
        return states

    def state_sizes(self, length: int) -> tuple[int, ...] | None:
        """See `iclbench.StatesSize`: the sizes of the model's own cache, if it is one of keys."""
        like = next(self.model.parameters())
        prompt = torch.zeros(1, length, self.width, dtype=like.dtype, device=like.device)
        try:
            with torch.no_grad():
                output = self.model(inputs_embeds=prompt, use_cache=True)
        except Exception:
            return None  # a few types have caches that only their own generation fills
        cache = getattr(getattr(output, "past_key_values", None), "layers", [])
        if not cache or not all(hasattr(layer, "keys") for layer in cache):
            return None
        return tuple(layer.keys.numel() + layer.values.numel() for layer in cache)


def reads_ahead(model: Any, length: int) -> bool:
    """Whether outputs of a copy with large random weights change with later inputs.

    The weights that a model starts with may be too small for that to show.
    """
    copied = copy.deepcopy(model).eval()
    half = length // 2
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for parameter in copied.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=parameter.shape[-1] ** -0.5)
        x = torch.randn(1, length, model.config.hidden_size)
        later = torch.cat([x[:, :half], torch.randn_like(x[:, half:])], dim=1)
        outputs = [copied(inputs_embeds=e, use_cache=False).last_hidden_state for e in (x, later)]
    before, after = (output[:, :half] for output in outputs)
    return not torch.allclose(before, after, rtol=1e-4, atol=1e-4)
