"""Exact weights of the block form: Richardson's iteration, and Chebyshev's polynomial.

The context rows are updated as the query is, so A must be kept: the first layer's second head
copies it into h₂ (h₂ ← h₂ + a − h₁), from where the later layers read it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Config, Construction, Signature, UsageError

A, H1, H2, _H3, B = range(5)


class StepsConfig(Config):
    """How many iterations, and for which eigenvalues."""

    steps: int = Field(4, ge=1, description="L, iterations, each a layer")
    heads: int = Field(
        2, ge=1, le=2, description="2: the first layer copies A too; 1: one more layer does"
    )
    low: float | None = Field(None, gt=0, description="smallest eigenvalue; null: the task's")
    high: float | None = Field(None, gt=0, description="largest eigenvalue; null: the task's")

    @model_validator(mode="after")
    def _low_is_not_above_high(self) -> StepsConfig:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("low must not be above high")
        return self


class Iteration(Construction):
    """x ← x + α_l(b − Ax), a step size α_l for each layer."""

    Config = StepsConfig

    @abstractmethod
    def step_sizes(self, low: float, high: float, steps: int) -> list[float]:
        """α₁, …, α_L for eigenvalues in [low, high]."""

    def build(
        self, signature: Signature, args: Any, task: Any
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Configuration and state; raises UsageError where no eigenvalues are known."""
        low, high = _bounds(args, task)
        layers = [] if args.heads == 2 else [[COPY]]
        for index, size in enumerate(self.step_sizes(low, high, args.steps)):
            copied = index > 0 or args.heads == 1
            first = _iteration(size, H2 if copied else A)
            layers.append([first, NOTHING if copied else COPY][: args.heads])
        state = {}
        for index, heads in enumerate(layers):
            for place, matrices in zip("PQ", zip(*heads, strict=True), strict=True):
                state[f"layers.{index}.{place}"] = torch.stack(matrices)
        config = {
            "form": "block",
            "layers": len(layers),
            "heads": args.heads,
            "normalize": False,
            "ones": True,
        }
        return config, state


def _bounds(args: StepsConfig, task: Any) -> tuple[float, float]:
    known = task.parameters.get("spectrum")
    low, high = (
        given if given is not None else None if known is None else float(known[i])
        for i, given in enumerate((args.low, args.high))
    )
    if low is None or high is None:
        raise UsageError(f"construction: {task.name} states no eigenvalues; give low and high")
    if low > high:
        raise UsageError(f"construction: low={low:g} is above high={high:g}")
    return low, high


def _blocks(entries: dict[tuple[int, int], float]) -> Tensor:
    found = torch.zeros(5, 5, dtype=torch.float64)
    for place, value in entries.items():
        found[place] = value
    return found


#: Scores h₁ⱼᵀh₁ᵢ, which pick row j = i, and values aⱼ − h₁ⱼ for h₂: P and Q.
COPY = (_blocks({(H2, A): 1.0, (H2, H1): -1.0}), _blocks({(H1, H1): 1.0}))


#: A head that adds nothing.
NOTHING = (_blocks({}), _blocks({}))


def _iteration(size: float, kept: int) -> tuple[Tensor, Tensor]:
    """Scores bⱼ·1 − (Aⱼ)ᵀx with A in part `kept`, and values α·onehotⱼ for a: P and Q."""
    return _blocks({(A, H1): size}), _blocks({(B, B): 1.0, (kept, A): -1.0})


class Richardson(Iteration):
    """The step size 2/(λmin + λmax) in every layer."""

    summary = "L steps of Richardson's iteration with the optimal step size"

    def step_sizes(self, low: float, high: float, steps: int) -> list[float]:
        """See `Iteration.step_sizes`."""
        return [2.0 / (low + high)] * steps


class Chebyshev(Iteration):
    """The inverses of the Chebyshev nodes: after L layers the polynomial of least worst error."""

    summary = "Richardson's iteration with Chebyshev's step size for each layer"

    def step_sizes(self, low: float, high: float, steps: int) -> list[float]:
        """See `Iteration.step_sizes`."""
        middle, radius = (high + low) / 2, (high - low) / 2
        angles = [math.pi * (2 * k + 1) / (2 * steps) for k in range(steps)]
        return [1.0 / node for node in leja([middle + radius * math.cos(a) for a in angles])]


def leja(nodes: list[float]) -> list[float]:
    """The nodes in Leja's order, each as far as can be from those before.

    In their own order rounding errors grow by orders of magnitude (Reichel, BIT 30, 1990).
    """
    left = sorted(nodes)
    found: list[float] = []
    while left:
        far = max(left, key=lambda v: math.prod(abs(v - u) for u in found) if found else abs(v))
        left.remove(far)
        found.append(far)
    return found
