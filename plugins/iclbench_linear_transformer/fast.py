"""The block form as it is trained: the same layers, laid out for products of matrices.

The vector parts of a component lie together, so that a matrix of blocks is one product; P is
applied to the sum over the context, and the last layer is computed for the queries only. Equal to
the paper's layers except for rounding. A leading dimension of tokens (R, B, …) and parameters
(R, …) may be that of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from .tokens import Tokens, block_tokens, component_mask


class FastBlockModel(nn.Module):
    """A `BlockModel` on systems (..., B, N, N)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prompt: Any) -> Tensor:
        """Return x (..., B, 1, N)."""
        prompt, length = self.model.scaled(prompt)
        tokens = block_tokens(prompt, self.model.ones, parts=-1)
        last = last_tokens(self.model.layers, tokens, component_mask(prompt), queries=1)
        x = last.vectors[..., 0, :, 0]
        return (x if length is None else x * length).unsqueeze(-2)


class FastRegressionModel(nn.Module):
    """A `RegressionModel` on prompts whose fields are (..., B, N, D)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prompt: Any) -> Tensor:
        """Return the prediction (..., B, Q, 1), or the weights (..., B, 1, D)."""
        answer: Tensor = self.model.answer(prompt, self._last_scalars)
        return answer

    def _last_scalars(self, vectors: Tensor, scalars: Tensor, queries: int) -> Tensor:
        """See `RegressionModel.last_scalars`."""
        tokens = Tokens(vectors.unsqueeze(-1), scalars)
        mask = torch.ones_like(vectors[..., 0, :])
        return last_tokens(self.model.layers, tokens, mask, queries).scalars


def last_tokens(layers: Iterable[Any], tokens: Tokens, mask: Tensor, queries: int) -> Tokens:
    """The queries after all layers: vectors (..., B, Q, N, V) and scalars (..., B, Q).

    The tokens have vectors (..., B, S, N, V) and scalars (..., B, S); `mask` is (..., B, N).
    """
    *before, last = layers
    for layer in before:
        tokens = _step(layer.blocks(), tokens, mask, queries, slice(None))
    return _step(last.blocks(), tokens, mask, queries, slice(-queries, None))


def _step(
    blocks: tuple[Tensor, Tensor], tokens: Tokens, mask: Tensor, queries: int, rows: slice
) -> Tokens:
    """e + Δe of some tokens; the queries are no context."""
    context = tokens.vectors[..., :-queries, :, :].flatten(-2)
    scalars = tokens.scalars[..., :-queries]
    asked = Tokens(tokens.vectors[..., rows, :, :], tokens.scalars[..., rows])
    changed, shape = asked, asked.vectors.shape
    for P, Q in zip(*(matrix.unbind(-3) for matrix in blocks), strict=True):
        right = _apply(Q, asked, mask)
        scores = right.vectors.flatten(-2) @ context.mT
        # Products of a few numbers per prompt are slow as products of matrices.
        scores = scores + right.scalars.unsqueeze(-1) * scalars.unsqueeze(-2)
        vectors = (scores @ context).view(shape)
        mixed = Tokens(vectors, (scores * scalars.unsqueeze(-2)).sum(dim=-1))
        changed = changed + _apply(P, mixed, mask)
    return changed


def _apply(blocks: Tensor, tokens: Tokens, mask: Tensor) -> Tokens:
    """See `tokens.apply_blocks`; blocks (..., V + 1, V + 1)."""
    vectors, scalars = tokens
    count = vectors.shape[-1]
    inner = blocks[..., :-1, :-1]
    moved = (vectors.reshape(*inner.shape[:-2], -1, count) @ inner.mT).view(vectors.shape)
    added = scalars[..., None] * blocks[..., None, None, :-1, -1]
    moved = torch.addcmul(moved, added.unsqueeze(-2), mask[..., None, :, None])
    sums = (vectors.sum(dim=-2) * blocks[..., None, None, -1, :-1]).sum(dim=-1)
    return Tokens(moved, sums + blocks[..., -1, -1][..., None, None] * scalars)
