"""The block form in training: the same layers, laid out for matrix products.

The vector parts of a component are adjacent in memory, so applying a matrix of blocks is one
product. P is applied to the sum over the context, and the last layer is computed only for the
queries. Results equal those of the paper's layers up to rounding. Tokens (R, B, …) and parameters
(R, …) may have a leading dimension of replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from .tokens import Tokens, block_tokens, component_mask


class FastBlockModel(nn.Module):
    """A `BlockModel` for systems (..., B, N, N)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, prompt: Any) -> Tensor:
        """Return x (..., B, 1, N)."""
        prompt, factor = self.model.scaled(prompt)
        tokens = block_tokens(prompt, self.model.ones, parts=-1)
        last = last_tokens(self.model.layers, tokens, component_mask(prompt), queries=1)
        x = last.vectors[..., 0, :, 0]
        return (x if factor is None else x * factor).unsqueeze(-2)


class FastRegressionModel(nn.Module):
    """A `RegressionModel` for prompts whose fields are (..., B, N, D)."""

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

    `tokens` have vectors (..., B, S, N, V) and scalars (..., B, S); `mask` is (..., B, N).
    """
    # Context rows change in every layer, so only the last layer may leave them out.
    *earlier, last = layers
    for layer in earlier:
        tokens = _step(layer.blocks(), tokens, mask, queries, slice(None))
    return _step(last.blocks(), tokens, mask, queries, slice(-queries, None))


def _step(
    blocks: tuple[Tensor, Tensor], tokens: Tokens, mask: Tensor, queries: int, rows: slice
) -> Tokens:
    """e + Δe of the tokens `rows`; the context is all tokens except the queries."""
    context = tokens.vectors[..., :-queries, :, :].flatten(-2)
    scalars = tokens.scalars[..., :-queries]
    selected = Tokens(tokens.vectors[..., rows, :, :], tokens.scalars[..., rows])
    updated, shape = selected, selected.vectors.shape
    for P, Q in zip(*(matrix.unbind(-3) for matrix in blocks), strict=True):
        right = _apply(Q, selected, mask)
        scores = right.vectors.flatten(-2) @ context.mT
        # An outer product by broadcasting: a batched matrix product of such small sizes is slow.
        scores = scores + right.scalars.unsqueeze(-1) * scalars.unsqueeze(-2)
        vectors = (scores @ context).view(shape)
        mixed = Tokens(vectors, (scores * scalars.unsqueeze(-2)).sum(dim=-1))
        # P is linear, so applying it once to the sum equals applying it to every context token.
        updated = updated + _apply(P, mixed, mask)
    return updated


def _apply(blocks: Tensor, tokens: Tokens, mask: Tensor) -> Tokens:
    """`tokens.apply_blocks` for this layout; `blocks` is (..., V + 1, V + 1)."""
    vectors, scalars = tokens
    count = vectors.shape[-1]
    inner = blocks[..., :-1, :-1]
    moved = (vectors.reshape(*inner.shape[:-2], -1, count) @ inner.mT).view(vectors.shape)
    added = scalars[..., None] * blocks[..., None, None, :-1, -1]
    moved = torch.addcmul(moved, added.unsqueeze(-2), mask[..., None, :, None])
    sums = (vectors.sum(dim=-2) * blocks[..., None, None, -1, :-1]).sum(dim=-1)
    return Tokens(moved, sums + blocks[..., -1, -1][..., None, None] * scalars)
