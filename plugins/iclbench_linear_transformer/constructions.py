"""Exact weights of the block form: Richardson's iteration and Chebyshev's polynomial.

Layers update the context rows as well as the query, so A must be saved: the second head of the
first layer copies it into h₂ (h₂ ← h₂ + a − h₁), from which later layers read it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Config, Construction, Signature, UsageError

# Rows and columns of P and Q.
A, H1, H2, _H3, B = range(5)


class StepsConfig(Config):
    """Number of iterations and range of eigenvalues."""

    steps: int = Field(4, ge=1, description="L, number of iterations, one per layer")
    heads: int = Field(
        2,
        ge=1,
        le=2,
        description="number of heads; with 2, the first layer also copies A; with 1, an additional "
        "layer copies it",
    )
    low: float | None = Field(None, gt=0, description="smallest eigenvalue of A; null: the task's")
    high: float | None = Field(None, gt=0, description="largest eigenvalue of A; null: the task's")

    @model_validator(mode="after")
    def _low_is_not_above_high(self) -> StepsConfig:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("low must not be above high")
        return self


class Iteration(Construction):
    """x ← x + α_l(b − Ax) with a step size α_l per layer."""

    Config = StepsConfig

    @abstractmethod
    def step_sizes(self, low: float, high: float, steps: int) -> list[float]:
        """α₁, …, α_L for eigenvalues in [low, high]."""

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return configuration and state.

        Raises UsageError for a task that does not ask for the solution of systems, if it states no
        eigenvalues and `low` or `high` is missing, or if `low` is above `high`.
        """
        if signature.target != "solution":
            raise UsageError(f"construction: {task.name} does not ask for the solution of systems")
        low, high = _eigenvalue_range(args, task)
        layers = [] if args.heads == 2 else [[COPY]]
        # Only A needs a copy: no head writes to b.
        for index, size in enumerate(self.step_sizes(low, high, args.steps)):
            # Until A is copied, part a still holds it.
            copied = index > 0 or args.heads == 1
            iteration = _iteration(size, H2 if copied else A)
            layers.append([iteration, ZERO if copied else COPY][: args.heads])
        state = {}
        for index, heads in enumerate(layers):
            for name, matrices in zip("PQ", zip(*heads, strict=True), strict=True):
                state[f"layers.{index}.{name}"] = torch.stack(matrices)
        config = {
            "form": "block",
            "layers": len(layers),
            "heads": args.heads,
            "normalize": False,
            "homogeneous": False,
            "ones": True,
        }
        return config, state


def _eigenvalue_range(args: StepsConfig, task: Any) -> tuple[float, float]:
    """`low` and `high`, by default those of the task."""
    low, high = args.low, args.high
    spectrum = task.parameters.get("spectrum")
    if spectrum is not None:
        low = float(spectrum[0]) if low is None else low
        high = float(spectrum[1]) if high is None else high
    if low is None or high is None:
        raise UsageError(f"construction: {task.name} states no eigenvalues; set low and high")
    if low > high:
        raise UsageError(f"construction: low={low:g} is above high={high:g}")
    return low, high


def _blocks(entries: dict[tuple[int, int], float]) -> Tensor:
    """The block matrix (5, 5), float64, with these entries and zeros elsewhere."""
    blocks = torch.zeros(5, 5, dtype=torch.float64)
    for index, value in entries.items():
        blocks[index] = value
    return blocks


#: P and Q of the head that copies A: scores h₁ⱼᵀh₁ᵢ select row j = i, values aⱼ − h₁ⱼ go to h₂.
COPY = (_blocks({(H2, A): 1.0, (H2, H1): -1.0}), _blocks({(H1, H1): 1.0}))

#: P and Q of a head that adds nothing.
ZERO = (_blocks({}), _blocks({}))


def _iteration(size: float, source: int) -> tuple[Tensor, Tensor]:
    """P and Q of a head that iterates with step size α, where part `source` holds A.

    Scores are the residuals bⱼ·1 − (Aⱼ)ᵀx; values α·onehotⱼ go to part a.
    """
    # onehotⱼ is h₁ⱼ: summed with the residuals as scores, it adds α(b − Ax) to x.
    return _blocks({(A, H1): size}), _blocks({(B, B): 1.0, (source, A): -1.0})


class Richardson(Iteration):
    """The step size 2/(λmin + λmax) in every layer."""

    summary = "L steps of Richardson iteration with the optimal step size"

    def step_sizes(self, low: float, high: float, steps: int) -> list[float]:
        """See `Iteration.step_sizes`."""
        # |1 − αλ| is then equal at both ends of the spectrum, which minimizes its largest value.
        return [2.0 / (low + high)] * steps


class Chebyshev(Iteration):
    """Inverse Chebyshev nodes as step sizes, which minimize the worst error after L layers."""

    summary = "Richardson iteration with Chebyshev's step size in each layer"

    def step_sizes(self, low: float, high: float, steps: int) -> list[float]:
        """See `Iteration.step_sizes`."""
        # The residual polynomial ∏(1 − λ/node) is then the scaled Chebyshev polynomial of degree L.
        middle, radius = (high + low) / 2, (high - low) / 2
        angles = [math.pi * (2 * k + 1) / (2 * steps) for k in range(steps)]
        return [1.0 / node for node in leja([middle + radius * math.cos(a) for a in angles])]


def leja(nodes: list[float]) -> list[float]:
    """The nodes in Leja's order: each maximizes the product of distances to those before it.

    In increasing order, rounding errors grow by orders of magnitude (Reichel, BIT 30, 1990).
    """
    remaining = sorted(nodes)
    ordered: list[float] = []
    # A product of n distances is about (span/4)ⁿ. A power of 2 keeps it representable, exactly.
    span = remaining[-1] - remaining[0] if remaining else 0.0
    unit = 2.0 ** -math.frexp(span / 4)[1]

    def distance(node: float) -> float:
        return math.prod(unit * abs(node - other) for other in ordered) if ordered else abs(node)

    while remaining:
        farthest = max(remaining, key=distance)
        remaining.remove(farthest)
        ordered.append(farthest)
    return ordered
