"""Exact BaseConv models wire by wire: named channels of the stream, and products of wires.

The sequence model adds each layer to its stream, so a layer states what is added to which channel:
(a convolution of one channel) × (another channel) × a weight, position by position. A layer has as
many such products as the model is wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from iclbench import Signature, UsageError


def channels(**sizes: int) -> dict[str, range]:
    """Consecutive channels of those sizes, by name."""
    ends = list(accumulate(sizes.values()))
    return {n: range(end - k, end) for (n, k), end in zip(sizes.items(), ends, strict=True)}


@dataclass(frozen=True)
class Product:
    """One product of a layer: what it convolves, with which taps, its gate, where it is added.

    `source` and `gate` are channels, or None for the constant 1; `to` maps channels to weights.
    """

    source: int | None
    gate: int | None
    to: Mapping[int, float]
    taps: Tensor


@dataclass
class Circuit:
    """A BaseConv model of `length` positions under construction; all in float64."""

    length: int
    width: int
    layers: list[list[Product]] = field(default_factory=list)

    def here(self) -> Tensor:
        """Taps (S,) that leave a channel as it is."""
        return self.lag(0)

    def lag(self, lag: int) -> Tensor:
        """Taps (S,) that show the position `lag` before; circularly after it, if negative."""
        taps = torch.zeros(self.length, dtype=torch.float64)
        taps[lag % self.length] = 1.0
        return taps

    def earlier(self) -> Tensor:
        """Taps (S,) that sum all positions before."""
        return self.everywhere() - self.here()

    def everywhere(self) -> Tensor:
        """Taps (S,) that sum all positions; of a causal model, all up to this one."""
        return torch.ones(self.length, dtype=torch.float64)

    def product(
        self,
        source: int | None,
        gate: int | None,
        to: Mapping[int, float],
        taps: Tensor | None = None,
    ) -> Product:
        """(taps ∗ source) × gate, added to channels."""
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
        """Configuration and state of the sequence model.

        `embed` maps features of the tokens to channels; `readout` lists, for each output, the
        channels that it sums; `positions` is (S, width).
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
            state["embed.real.weight"][channel, feature] = 1.0
        for output, summed in enumerate(readout):
            state["readout.weight"][output, summed] = 1.0
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
            "layer_norm": False,
            "mlp": False,
            "bias": "channel",
            # An FFT would spread rounding over all positions.
            "convolution": "direct",
        }

    def _mixer(self, layer: list[Product]) -> dict[str, Tensor]:
        if len(layer) > self.width:
            raise ValueError(f"{len(layer)} products do not fit into {self.width} channels")
        C = self.width
        square = {n: torch.zeros(C, C, dtype=torch.float64) for n in ("gate", "input", "output")}
        biases = {f"{n}_bias": torch.zeros(C, dtype=torch.float64)
                  for n in ("gate", "input", "filter", "output")}  # fmt: skip
        taps = torch.zeros(self.length, C, dtype=torch.float64)
        for c, product in enumerate(layer):
            taps[:, c] = product.taps
            if product.source is None:
                biases["filter_bias"][c] = 1.0
            else:
                square["input"][product.source, c] = 1.0
            if product.gate is None:
                biases["gate_bias"][c] = 1.0
            else:
                square["gate"][product.gate, c] = 1.0
            for channel, weight in product.to.items():
                square["output"][c, channel] = weight
        return {**square, **biases, "filter": taps}


def examples_and_dim(name: str, signature: Signature, tokens: int) -> tuple[int, int]:
    """N and D of a task whose sequence is N examples and `tokens` more; raises UsageError."""
    n, d = signature.shapes.get("x", (0, 0))
    if not n or signature.length != n + tokens or signature.input_width < d + 1:
        after = f"N examples (x, y) and {tokens} more" if tokens else "N examples (x, y)"
        raise UsageError(f"construction {name}: it needs a sequence of {after}")
    return n, d
