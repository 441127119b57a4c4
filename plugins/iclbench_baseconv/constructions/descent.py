"""`gd-causal` and `gd-non-causal`: gradient descent on least squares (Liu et al., C.2)."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config, Construction, Signature, UsageError

from .circuit import Circuit, Product, channels, examples_and_dim

Built = tuple[dict[str, Any], dict[str, Tensor]]


class DescentConfig(Config):
    """T steps w ← w − (η/N)(Σ xᵢxᵢᵀ w − Σ yᵢxᵢ) from w = 0."""

    steps: int = Field(200, ge=1, description="T, the number of gradient steps")
    step_size: float | None = Field(
        None, gt=0, description="η, step size; the gradient includes 1/N; null: 1/(1 + √(D/N))²"
    )

    def eta(self, examples: int, dim: int) -> float:
        """η, by default the inverse of the largest eigenvalue of XᵀX/N.

        That of x ~ N(0, I) in the limit of many dimensions: the weights are the same for all
        prompts, so their step size can't follow the prompt.
        """
        # The upper edge of the Marchenko–Pastur distribution with ratio D/N.
        edge = (1.0 + math.sqrt(dim / examples)) ** 2
        return 1.0 / edge if self.step_size is None else self.step_size


class CausalDescent(Construction):
    """C.2.2: two layers form Σ yᵢxᵢ and Σ xᵢxᵢᵀ, and T layers take a step each.

    For the target `query`, one more layer predicts. The sums are over earlier positions, so they
    leave out the query, which comes last. The sign of eq. 46 is corrected. The model has
    2D² + 4D + 2 channels.
    """

    summary = "T steps of gradient descent, with one causal layer for each (Liu et al. 2025, C.2.2)"
    Config = DescentConfig

    def build(self, signature: Signature, args: DescentConfig, task: Any) -> Built:
        """See `Construction.build`; the task is N examples and a query."""
        n, d = _fit("gd-causal", signature)
        c = channels(x=d, y=1, yx=d, xx=d * d, b=d, A=d * d, w=d, answer=1)
        circuit = Circuit(signature.length, c["answer"].stop)
        circuit.layers += [form_products(circuit, c), sum_products(circuit, c)]
        # The gradient's 1/N is in the rate, because the layers compute sums (eq. 45).
        rate = args.eta(n, d) / n
        for _ in range(args.steps):
            circuit.layers.append(
                # w ← w − rate (A w − b): eq. 46 with the sign of eq. 45. w starts at 0.
                times_w(circuit, c, "w", -rate)
                + [circuit.product(b, None, {w: rate}) for b, w in zip(c["b"], c["w"], strict=True)]
            )
        return _predict(circuit, c, signature, query="x", causal=True)


class NonCausalDescent(Construction):
    """C.2.1: one layer moves the query away, and three layers take a step.

    The three layers compute the residual r = xᵀw − y, the product r·x, and the step from the sum of
    r·x over all positions. The step includes the factor 1/N, which the paper omits. For the target
    `query`, one more layer predicts. The model has 4D + 4 channels.
    """

    summary = (
        "T steps of gradient descent, with three non-causal layers for each (Liu et al. 2025, "
        "C.2.1)"
    )
    Config = DescentConfig

    def build(self, signature: Signature, args: DescentConfig, task: Any) -> Built:
        """See `Construction.build`; the task is N examples and a query."""
        n, d = _fit("gd-non-causal", signature)
        c = channels(x=d, y=1, w=d, r=1, g=d, query=d, last=1, answer=1)
        circuit = Circuit(signature.length, c["answer"].stop)
        (y,), (r,), (last,) = c["y"], c["r"], c["last"]
        product = circuit.product
        # Without this layer the query would count as an example with y = 0 in the sums.
        circuit.layers.append(
            [product(x, last, {x: -1.0, q: 1.0}) for x, q in zip(c["x"], c["query"], strict=True)]
        )
        # The products xₖwₖ all go to the channel r, so W_out sums them to xᵀw.
        residual = [product(x, w, {r: 1.0}) for x, w in zip(c["x"], c["w"], strict=True)]
        residual.append(product(y, None, {r: -1.0}))
        # Each layer also clears what the previous one left, for the next step.
        weighted = [product(r, x, {g: 1.0}) for x, g in zip(c["x"], c["g"], strict=True)]
        weighted.append(product(r, None, {r: -1.0}))
        # Every position sums over all positions, so all take the same step and share w. In a
        # causal model each would descend on its own prefix.
        rate, everywhere = args.eta(n, d) / n, circuit.everywhere()
        step = [product(g, None, {w: -rate}, everywhere)
                for g, w in zip(c["g"], c["w"], strict=True)]  # fmt: skip
        step += [product(g, None, {g: -1.0}) for g in c["g"]]
        circuit.layers += [residual, weighted, step] * args.steps
        positions = torch.zeros(circuit.length, circuit.width)
        # A gate that is 1 at the query and 0 at the examples.
        positions[-1, last] = 1.0
        return _predict(circuit, c, signature, query="query", causal=False, positions=positions)


def form_products(circuit: Circuit, c: dict[str, range]) -> list[Product]:
    """Return products that form yx and flt(xxᵀ) at every position (C.2.2, layer 1)."""
    (y,) = c["y"]
    moments = [circuit.product(x, y, {yx: 1.0}) for x, yx in zip(c["x"], c["yx"], strict=True)]
    pairs = [(a, b) for a in c["x"] for b in c["x"]]
    # Row-major, the order in which `times_w` reads A.
    entries = zip(pairs, c["xx"], strict=True)
    return moments + [circuit.product(a, b, {xx: 1.0}) for (a, b), xx in entries]


def sum_products(circuit: Circuit, c: dict[str, range]) -> list[Product]:
    """Return products b = Σ yx and A = Σ flt(xxᵀ) over earlier positions (C.2.2, layer 2)."""
    pairs = [*zip(c["yx"], c["b"], strict=True), *zip(c["xx"], c["A"], strict=True)]
    return [circuit.product(s, None, {t: 1.0}, circuit.earlier()) for s, t in pairs]


def times_w(
    circuit: Circuit, c: dict[str, range], to: str, weight: float, by: str = "w"
) -> list[Product]:
    """Return products that add weight · A w to the channels `to`, for w in the channels `by`."""
    # A w takes one product per entry of A: (A w)ᵢ = Σⱼ Aᵢⱼ wⱼ, gated by wⱼ.
    entries = [(row, column) for row in c[to] for column in c[by]]
    return [
        circuit.product(a, column, {row: weight})
        for a, (row, column) in zip(c["A"], entries, strict=True)
    ]


def _fit(name: str, signature: Signature) -> tuple[int, int]:
    """Return N and D; raises UsageError for a task that is not N examples and a query."""
    n, d = examples_and_dim(name, signature, tokens=1)
    if signature.target not in {"query", "weights"} or signature.readout != (n,):
        raise UsageError(f"construction {name}: it answers query or weights at the last token")
    if "w" in signature.shapes:
        raise UsageError(f"construction {name}: the last token must be a query")
    return n, d


def _predict(
    circuit: Circuit,
    c: dict[str, range],
    signature: Signature,
    *,
    query: str,
    causal: bool,
    positions: Tensor | None = None,
) -> Built:
    """Append the prediction, the weights or their product with the query; return the model."""
    embed = dict(enumerate([*c["x"], *c["y"]]))
    # The read-out reads w directly; only its product with the query needs a layer.
    readout = [[w] for w in c["w"]]
    if signature.target == "query":
        (answer,) = c["answer"]
        pairs = zip(c[query], c["w"], strict=True)
        circuit.layers.append([circuit.product(q, w, {answer: 1.0}) for q, w in pairs])
        readout = [[answer]]
    return circuit.model(
        signature, embed=embed, readout=readout, causal=causal, positions=positions
    )
