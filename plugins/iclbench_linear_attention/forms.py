"""The paper's two input matrices: where each quantity stands, and the matrix of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from .operators import Range


@dataclass(frozen=True)
class Layout:
    """The shape (rows, columns) of an input matrix, its blocks of columns, its output cell.

    `w` is the last column; its first D rows hold the current weights.
    """

    rows: int
    blocks: Mapping[str, Range]
    output: tuple[int, int]

    @property
    def columns(self) -> int:
        """s, the number of columns."""
        return self.blocks["w"][1]


def designed_layout(examples: int, dim: int) -> Layout:
    """(D+1, 2N+D+3): √ηX, √ηy, 1, √(ηλ)I, u, w (elsa, eq. 37)."""
    widths = {"x": examples, "y": examples, "one": 1, "ridge": dim, "query": 1, "w": 1}
    blocks = _blocks(widths)
    return Layout(dim + 1, blocks, (dim, blocks["w"][0]))


def enumerated_layout(examples: int, dim: int) -> Layout:
    """(D, 2N+2D+3): X, Y₀, λI, √ηI, u, z, w (elsa, eq. 56)."""
    widths = {"x": examples, "y": examples, "ridge": dim, "step": dim,
              "query": 1, "z": 1, "w": 1}  # fmt: skip
    blocks = _blocks(widths)
    return Layout(dim, blocks, (0, blocks["z"][0]))


LAYOUTS = {"designed": designed_layout, "enumerated": enumerated_layout}


def designed(prompt: Any, ridge: Tensor, step: Tensor) -> Tensor:
    """H₀ (B, D+1, 2N+D+3) of eq. 37, w₀ = 0, from ridge and step (B,)."""
    x, y, u = prompt.x.mT, prompt.y.mT, prompt.query.mT
    dim = x.shape[1]
    root = step.sqrt()[:, None, None]
    identity = torch.eye(dim, dtype=x.dtype, device=x.device)
    penalty = root * ridge.sqrt()[:, None, None] * identity
    one, zero = torch.ones_like(u[:, :1]), torch.zeros_like(u)
    upper = [root * x, torch.zeros_like(x), zero, penalty, u, zero]
    none = torch.zeros_like(y)
    lower = [none, root * y, one, none[:, :, :1].expand(-1, -1, dim), zero[:, :1], zero[:, :1]]
    return torch.cat([torch.cat(upper, dim=2), torch.cat(lower, dim=2)], dim=1)


def enumerated(prompt: Any, ridge: Tensor, step: Tensor) -> Tensor:
    """H₀ (B, D, 2N+2D+3) of eq. 56, w₀ = 0, from ridge and step (B,)."""
    x, y, u = prompt.x.mT, prompt.y.mT, prompt.query.mT
    dim = x.shape[1]
    identity = torch.eye(dim, dtype=x.dtype, device=x.device)
    values = torch.cat([torch.zeros_like(x[:, 1:]), y], dim=1)
    penalty = ridge[:, None, None] * identity
    zero = torch.zeros_like(u)
    parts = [x, values, penalty, step.sqrt()[:, None, None] * identity, u, zero, zero]
    return torch.cat(parts, dim=2)


FORMS = {"designed": designed, "enumerated": enumerated}


def _blocks(widths: Mapping[str, int]) -> dict[str, Range]:
    ends = list(accumulate(widths.values()))
    return {n: (end - w, end) for (n, w), end in zip(widths.items(), ends, strict=True)}
