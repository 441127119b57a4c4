"""The paper's two input matrices: their layouts, and how a prompt fills them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from torch import Tensor

from .operators import Range


@dataclass(frozen=True)
class Layout:
    """The shape (rows, columns) of an input matrix, its named columns, and its output cell.

    `blocks` maps a name to a range of columns. `w` is the last column; its first D rows hold the
    current weights.
    """

    rows: int
    blocks: Mapping[str, Range]
    output: tuple[int, int]

    @property
    def columns(self) -> int:
        """The number of columns s."""
        return self.blocks["w"][1]


def designed_layout(examples: int, dim: int) -> Layout:
    """Return the layout (D+1, 2N+D+3): √ηX, √ηy, 1, √(ηλ)I, u, w (Hagiwara, eq. 37)."""
    widths = {"x": examples, "y": examples, "one": 1, "ridge": dim, "query": 1, "w": 1}
    blocks = _blocks(widths)
    return Layout(dim + 1, blocks, (dim, blocks["w"][0]))


def enumerated_layout(examples: int, dim: int) -> Layout:
    """Return the layout (D, 2N+2D+3): X, Y₀, λI, √ηI, u, z, w (Hagiwara, eq. 56)."""
    widths = {"x": examples, "y": examples, "ridge": dim, "step": dim,
              "query": 1, "z": 1, "w": 1}  # fmt: skip
    blocks = _blocks(widths)
    return Layout(dim, blocks, (0, blocks["z"][0]))


LAYOUTS = {"designed": designed_layout, "enumerated": enumerated_layout}


def designed(prompt: Any, ridge: Tensor | None, step: Tensor) -> Tensor:
    """Return H₀ (..., D+1, 2N+D+3) of eq. 37 with w₀ = 0.

    `ridge` is λ (...), or None for 0; `step` is η (...) or ().
    """
    *lead, count, dim = prompt.x.shape
    # Every product of eqs. 46–49 has two factors with √η, which gives the update its η.
    root = step.sqrt()[..., None, None]
    H: Tensor = prompt.x.new_zeros(*lead, dim + 1, 2 * count + dim + 3)
    H[..., :dim, :count] = root * prompt.x.mT
    H[..., dim:, count : 2 * count] = root * prompt.y.mT
    # Its inner product with a column of √ηy is that √ηyᵢ: the way to select y (eqs. 40 and 42).
    H[..., dim, 2 * count] = 1.0
    if ridge is not None:
        _on_diagonal(H[..., :dim, 2 * count + 1 : -2], step.sqrt() * ridge.sqrt())
    H[..., :dim, -2:-1] = prompt.query.mT
    return H


def enumerated(prompt: Any, ridge: Tensor | None, step: Tensor) -> Tensor:
    """Return H₀ (..., D, 2N+2D+3) of eq. 56 with w₀ = 0.

    `ridge` is λ (...), or None for 0; `step` is η (...) or ().
    """
    *lead, count, dim = prompt.x.shape
    H: Tensor = prompt.x.new_zeros(*lead, dim, 2 * (count + dim) + 3)
    H[..., :count] = prompt.x.mT
    # Y₀ has y in its last column, so XᵀY₀ has Xᵀy in its last column, where w lies (eq. 71).
    H[..., -1:, count : 2 * count] = prompt.y.mT
    if ridge is not None:
        _on_diagonal(H[..., 2 * count : 2 * count + dim], ridge)
    # The root, because a head multiplies this block by itself to get ηI (eq. 72).
    _on_diagonal(H[..., 2 * count + dim : -3], step.sqrt())
    H[..., -3:-2] = prompt.query.mT
    return H


def _on_diagonal(block: Tensor, values: Tensor) -> None:
    """Fill the diagonals of blocks (..., D, D) with values (...)."""
    diagonal = block.diagonal(dim1=-2, dim2=-1)
    diagonal.copy_(values[..., None].expand_as(diagonal))


FORMS = {"designed": designed, "enumerated": enumerated}


@dataclass(frozen=True)
class InputMatrix:
    """Maps a prompt to H₀ in one of `FORMS`.

    `step` is N·η for prompts without a step size; None: see `default_step`.
    """

    form: str
    step: float | None

    def __call__(self, prompt: Any) -> Tensor:
        """Return H₀ (..., m, s)."""
        step = getattr(prompt, "step", None)
        if step is None:
            examples, dim = prompt.x.shape[-2:]
            size = default_step(examples, dim) if self.step is None else self.step
            # The paper's objective has no factor 1/N (eq. 33), so η absorbs it.
            step = prompt.x.new_full((), size / examples)
        return FORMS[self.form](prompt, getattr(prompt, "ridge", None), step)


def _blocks(widths: Mapping[str, int]) -> dict[str, Range]:
    """Assign consecutive columns to blocks of these widths."""
    ends = list(accumulate(widths.values()))
    columns = zip(widths.items(), ends, strict=True)
    return {name: (end - width, end) for (name, width), end in columns}


def default_step(examples: int, dim: int) -> float:
    """N·η, the inverse of the largest eigenvalue of XᵀX/N for x ~ N(0, I) and many dimensions.

    A prompt without a step size shows none, so all prompts share one.
    """
    return (1.0 + math.sqrt(dim / examples)) ** -2
