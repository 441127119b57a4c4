"""Exact BaseConv models written as circuits: named channels, and products of channels.

The sequence model adds the output of each layer to its residual stream. A layer is therefore a
list of products (taps ∗ source channel) × gate channel × weight, each added to some channels,
position by position. A layer has at most as many products as the model is wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from iclbench import Signature, UsageError


def channels(**sizes: int) -> dict[str, range]:
    """Assign consecutive channels to names, as many to each as its size."""
    ends = list(accumulate(sizes.values()))
    named = zip(sizes.items(), ends, strict=True)
    return {name: range(end - size, end) for (name, size), end in named}


@dataclass(frozen=True)
class Product:
    """One product (taps ∗ source) × gate of a layer, added to channels with weights.

    `source` and `gate` are channels, or None for the constant 1. `to` maps channels to weights;
    `taps` is (S,).
    """

    source: int | None
    gate: int | None
    to: Mapping[int, float]
    taps: Tensor


@dataclass
class Circuit:
    """A BaseConv model of `length` positions under construction, in float64."""

    length: int
    width: int
    layers: list[list[Product]] = field(default_factory=list)

    def here(self) -> Tensor:
        """Return taps (S,) that leave a channel unchanged."""
        return self.lag(0)

    def lag(self, lag: int) -> Tensor:
        """Return taps (S,) that read the position `lag` before, circularly if it is negative."""
        taps = torch.zeros(self.length, dtype=torch.float64)
        taps[lag % self.length] = 1.0
        return taps

    def earlier(self) -> Tensor:
        """Return taps (S,) that sum all earlier positions."""
        return self.everywhere() - self.here()

    def everywhere(self) -> Tensor:
        """Return taps (S,) that sum all positions, or all up to this one in a causal model."""
        return torch.ones(self.length, dtype=torch.float64)

    def product(
        self,
        source: int | None,
        gate: int | None,
        to: Mapping[int, float],
        taps: Tensor | None = None,
    ) -> Product:
        """Return a product; by default its taps leave the source unchanged."""
        return Product(source, gate, to, self.here() if taps is None else taps)

    def model(
        self,
        signature: Signature,
        *,
        embed: Mapping[int, int],
        readout: list[list[int]],
        causal: bool,
        positions: Tensor | None = None,
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return configuration and state dict of the sequence model.

        `embed` maps the tokens' features to channels. `readout` lists the channels that each output
        sums. `positions` is (S, width). Raises ValueError for a layer with too many products.
        """
        state = {
            "embed.real.weight": torch.zeros(self.width, signature.input_width),
            "embed.real.bias": torch.zeros(self.width),
            "positions": torch.zeros(self.length, self.width),
            "readout.weight": torch.zeros(signature.output_width, self.width),
            "readout.bias": torch.zeros(signature.output_width),
        }
        state = {name: value.double() for name, value in state.items()}
        for feature, channel in embed.items():
            # Features are copied; all other channels of the stream start at 0.
            state["embed.real.weight"][channel, feature] = 1.0
        for output, summed in enumerate(readout):
            state["readout.weight"][output, summed] = 1.0
        # Most circuits treat all positions alike and need no positions.
        if positions is not None:
            state["positions"] = positions.double()
        for i, layer in enumerate(self.layers):
            mixer = self._mixer(layer)
            state.update({f"blocks.{i}.mixer.{name}": value for name, value in mixer.items()})
        return self._config(causal), state

    def _config(self, causal: bool) -> dict[str, Any]:
        return {
            "layers": len(self.layers),
            "width": self.width,
            "causal": causal,
            # A norm would rescale the numbers in the stream, and products need no MLP.
            "layer_norm": False,
            "mlp": False,
            "bias": "channel",
            # An FFT would spread rounding error over all positions.
            "convolution": "direct",
        }

    def _mixer(self, layer: list[Product]) -> dict[str, Tensor]:
        """Return the mixer's parameters, with product c in its hidden channel c."""
        if len(layer) > self.width:
            raise ValueError(f"{len(layer)} products do not fit into {self.width} channels")
        width = self.width
        zeros = partial(torch.zeros, dtype=torch.float64)
        weights = {name: zeros(width, width) for name in ("gate", "input", "output")}
        biases = {f"{name}_bias": zeros(width) for name in ("gate", "input", "filter", "output")}
        taps = zeros(self.length, width)
        for c, product in enumerate(layer):
            taps[:, c] = product.taps
            # The constant 1 is a bias; for a source it is added after the convolution.
            if product.source is None:
                biases["filter_bias"][c] = 1.0
            else:
                weights["input"][product.source, c] = 1.0
            if product.gate is None:
                biases["gate_bias"][c] = 1.0
            else:
                weights["gate"][product.gate, c] = 1.0
            for channel, weight in product.to.items():
                # Several rows of W_out may write to one channel, which then sums their products.
                weights["output"][c, channel] = weight
        # Unused hidden channels have zero weights, gate and taps, and add nothing.
        return {**weights, **biases, "filter": taps}


def examples_and_dim(name: str, signature: Signature, tokens: int) -> tuple[int, int]:
    """Return N and D of a task whose sequence is N examples and `tokens` more tokens.

    Raises UsageError for any other sequence.
    """
    n, d = signature.shapes.get("x", (0, 0))
    if not n or signature.length != n + tokens or signature.input_width < d + 1:
        needed = f"N examples (x, y) and {tokens} more" if tokens else "N examples (x, y)"
        raise UsageError(f"construction {name}: it needs a sequence of {needed}")
    return n, d
