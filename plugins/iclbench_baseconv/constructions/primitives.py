"""Primitives of linear algebra in one layer each (Liu et al., C.1)."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config, Construction, Signature, UsageError

from .circuit import Circuit, channels

Built = tuple[dict[str, Any], dict[str, Tensor]]


class ReadingConfig(Config):
    """Whether the model is causal."""

    causal: bool = Field(
        True, description="whether the model is causal; a causal model can copy only to later rows"
    )


class Reading(Construction):
    """READ: at row j, selected by a one-hot position, add u[i] − u[j] to the stream (C.1.1)."""

    summary = "one layer that copies row i to row j (Liu et al. 2025, C.1.1)"
    Config = ReadingConfig

    def build(self, signature: Signature, args: ReadingConfig, task: Any) -> Built:
        """See `Construction.build`; the task has i and j, and i ≤ j for a causal model."""
        _require("read", task, "i", "j")
        i, j = (int(task.parameters[name]) for name in ("i", "j"))
        if args.causal and i > j:
            raise UsageError(f"construction read: a causal model can't copy row {i} to row {j}")
        length, dim = signature.length, signature.input_width
        c = channels(u=dim, position=length)
        circuit = Circuit(length, dim + length)
        # The residual adds u[j] again, so u[j] is subtracted here (C.1.1).
        taps = circuit.lag(j - i) - circuit.here()
        at_j = c["position"][j]
        circuit.layers.append([circuit.product(u, at_j, {u: 1.0}, taps) for u in c["u"]])
        # One-hot positions: the gate of row j reads channel j.
        positions = torch.cat([torch.zeros(length, dim), torch.eye(length)], dim=1)
        return circuit.model(
            signature,
            embed=dict(enumerate(c["u"])),
            readout=[[u] for u in c["u"]],
            causal=args.causal,
            positions=positions,
        )


class AffineMap(Construction):
    """AFFINE: the convolution branch is 1, and the output projection is h (C.1.2)."""

    summary = "one layer that computes xᵀh of every row x (Liu et al. 2025, C.1.2)"

    def build(self, signature: Signature, args: Config, task: Any) -> Built:
        """See `Construction.build`; the task has h."""
        _require("affine", task, "h")
        h = task.parameters["h"].tolist()
        c = channels(u=signature.input_width, answer=1)
        circuit = Circuit(signature.length, signature.input_width + 1)
        (answer,) = c["answer"]
        weights = zip(c["u"], h, strict=True)
        # The convolution's branch is 1, so the gate passes u on to W_out = h (C.1.2).
        circuit.layers.append([circuit.product(None, u, {answer: weight}) for u, weight in weights])
        return circuit.model(
            signature, embed=dict(enumerate(c["u"])), readout=[[answer]], causal=True
        )


class Multiplication(Construction):
    """MULTIPLY: gate the first half of every row by the second (C.1.3)."""

    summary = "one layer that multiplies the halves of every row (Liu et al. 2025, C.1.3)"

    def build(self, signature: Signature, args: Config, task: Any) -> Built:
        """See `Construction.build`; inputs are twice as wide as outputs."""
        n = signature.output_width
        if signature.target != "positions" or signature.input_width != 2 * n:
            raise UsageError("construction multiply: it needs inputs twice as wide as outputs")
        _require_no_parameters("multiply", task)
        return _products(signature, [(d, n + d) for d in range(n)])


class Squaring(Construction):
    """SQUARE: MULTIPLY(0, 0, D) (eq. 9)."""

    summary = "one layer that squares every entry (Liu et al. 2025, eq. 9)"

    def build(self, signature: Signature, args: Config, task: Any) -> Built:
        """See `Construction.build`; inputs are as wide as outputs."""
        n = signature.output_width
        if signature.target != "positions" or signature.input_width != n:
            raise UsageError("construction square: it needs inputs as wide as outputs")
        _require_no_parameters("square", task)
        return _products(signature, [(d, d) for d in range(n)])


def _require_no_parameters(name: str, task: Any) -> None:
    """Raise UsageError for a task of the same shapes that depends on parameters, as READ does."""
    if task.parameters:
        raise UsageError(f"construction {name}: {task.name} has parameters, products have none")


def _products(signature: Signature, pairs: list[tuple[int, int]]) -> Built:
    """Return a model whose output k is the product of the features in pair k."""
    # The residual keeps u, so the answers need channels of their own.
    c = channels(u=signature.input_width, answer=len(pairs))
    circuit = Circuit(signature.length, signature.input_width + len(pairs))
    circuit.layers.append(
        [circuit.product(a, b, {answer: 1.0})
         for (a, b), answer in zip(pairs, c["answer"], strict=True)]
    )  # fmt: skip
    return circuit.model(
        signature, embed=dict(enumerate(c["u"])), readout=[[a] for a in c["answer"]], causal=True
    )


def _require(name: str, task: Any, *parameters: str) -> None:
    """Raise UsageError unless the task has these parameters."""
    missing = [p for p in parameters if p not in task.parameters]
    if missing:
        raise UsageError(f"construction {name}: task {task.name} has no {' and no '.join(missing)}")
