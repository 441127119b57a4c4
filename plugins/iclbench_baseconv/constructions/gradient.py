"""`gradient`: the gradient of least squares in two causal layers, or one if features are given.

Layer 1 forms yᵢxᵢ and flt(xᵢxᵢᵀ) by its gate, and leaves w unchanged. Layer 2 sums them over
earlier positions, gates the sums by 1 and by w, and writes (1/N)(Σ xᵢxᵢᵀ w − Σ yᵢxᵢ).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from iclbench import Config, Construction, Signature, UsageError

from .circuit import Circuit, Product, channels, examples_and_dim
from .descent import form_products

Built = tuple[dict[str, Any], dict[str, Tensor]]


class GradientConfig(Config):
    """The size of the model, and how many of its layers are constructed."""

    layers: int | None = Field(
        None, ge=1, description="number of layers of the model; additional layers do nothing"
    )
    constructed: int | None = Field(
        None,
        ge=1,
        description="number of first layers with constructed weights; the others are initialized "
        "at random; null: all",
    )
    width: int | None = Field(
        None, ge=1, description="width of the model; null: the smallest possible"
    )


class Gradient(Construction):
    """The exact gradient at the last token, which holds w (Liu et al., eq. 46 corrected)."""

    summary = "the exact gradient in two layers, or one if the prompt contains features"
    Config = GradientConfig

    def build(self, signature: Signature, args: GradientConfig, task: Any) -> Built:
        """See `Construction.build`; needs N examples and w, and enough layers and width."""
        n, d = examples_and_dim("gradient", signature, tokens=1)
        if signature.target != "gradient" or "w" not in signature.shapes:
            raise UsageError("construction gradient: the task does not ask for a gradient at w")
        features = int(getattr(task.config, "features", 0))
        c = channels(x=d, y=1, yx=d, xx=d * d, answer=d)
        width = args.width or c["answer"].stop
        if width < c["answer"].stop:
            raise UsageError(f"construction gradient: it needs a width of {c['answer'].stop}")
        circuit = Circuit(signature.length, width)
        # Otherwise the prompt contains what this layer would compute (D.2.5).
        if features == 0:
            # At the last token it forms wwᵀ, which the sum over earlier positions leaves out.
            circuit.layers.append(form_products(circuit, c))
        circuit.layers.append(_gate_sums(circuit, c, 1.0 / n, summed=features == 2))
        layers = args.layers or len(circuit.layers)
        if layers < len(circuit.layers):
            raise UsageError(f"construction gradient: it needs {len(circuit.layers)} layers")
        if args.constructed and args.constructed > layers:
            raise UsageError(
                f"construction gradient: constructed must not be more than the {layers} layers"
            )
        # A layer without products has zero weights and leaves the stream unchanged.
        circuit.layers += [[]] * (layers - len(circuit.layers))
        inputs = [*c["x"], *c["y"], *c["yx"], *c["xx"]][: signature.input_width]
        # Without features the tokens hold zeros there, and layer 1 writes to these channels.
        embed = dict(enumerate(inputs if features else inputs[: d + 1]))
        config, state = circuit.model(
            signature, embed=embed, readout=[[g] for g in c["answer"]], causal=True
        )
        return config, _first_layers(state, args.constructed)


def _gate_sums(circuit: Circuit, c: dict[str, range], rate: float, summed: bool) -> list[Product]:
    """Return products that write (1/N)(Σ xxᵀ w − Σ yx) at the last token.

    If `summed`, the prompt's features are the sums already.
    """
    taps = circuit.here() if summed else circuit.earlier()
    moments = zip(c["yx"], c["answer"], strict=True)
    # The last token holds w in the channels of x.
    entries = [(row, w) for row in c["answer"] for w in c["x"]]
    # The sign of eq. 45; eq. 46 has the two sums the other way round.
    return [circuit.product(yx, None, {g: -rate}, taps) for yx, g in moments] + [
        circuit.product(xx, w, {row: rate}, taps)
        for xx, (row, w) in zip(c["xx"], entries, strict=True)
    ]


def _first_layers(state: dict[str, Tensor], constructed: int | None) -> dict[str, Tensor]:
    """Return the state of the embedding, positions and first layers; None keeps all of it."""
    if constructed is None:
        return state
    blocks = (f"blocks.{i}." for i in range(constructed))
    # Not the read-out: it reads what the remaining layers learn to write.
    prefixes = ("embed.", "positions", *blocks)
    return {name: value for name, value in state.items() if name.startswith(prefixes)}
