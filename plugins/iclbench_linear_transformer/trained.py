"""The block form as it is trained: the same layers, laid out for products.

The vector parts of a component lie together, so that a matrix of blocks is one product; P is
applied to what has been added up, and the last layer is computed of the queries alone. Equal to the
layers as they are evaluated but for rounding. Leading dimensions may be those of replicas: of
tokens (R, B, …) with parameters (R, …).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .tokens import Tokens


def last_tokens(layers: Sequence[Any], tokens: Tokens, there: Tensor, queries: int) -> Tokens:
    """The queries after all layers: vectors (..., B, Q, N, V) and scalars (..., B, Q).

    Of tokens whose vectors are (..., B, S, N, V), scalars (..., B, S); `there` (..., B, N).
    """
    for layer in layers[:-1]:
        tokens = _step(layer.blocks(), tokens, there, queries, slice(None))
    return _step(layers[-1].blocks(), tokens, there, queries, slice(-queries, None))


def _step(
    blocks: tuple[Tensor, Tensor], tokens: Tokens, there: Tensor, queries: int, rows: slice
) -> Tokens:
    """e + Δe of some tokens, from all but the queries."""
    context = tokens.vectors[..., :-queries, :, :].flatten(-2)
    scalars = tokens.scalars[..., :-queries]
    asked = Tokens(tokens.vectors[..., rows, :, :], tokens.scalars[..., rows])
    changed, shape = asked, asked.vectors.shape
    for P, Q in zip(*(matrix.unbind(-3) for matrix in blocks), strict=True):
        right = _apply(Q, asked, there)
        scores = right.vectors.flatten(-2) @ context.mT
        # Sums and products of few numbers a prompt: as products of matrices they are slow.
        scores = scores + right.scalars.unsqueeze(-1) * scalars.unsqueeze(-2)
        vectors = (scores @ context).view(shape)
        mixed = Tokens(vectors, (scores * scalars.unsqueeze(-2)).sum(dim=-1))
        changed = changed + _apply(P, mixed, there)
    return changed


def _apply(blocks: Tensor, tokens: Tokens, there: Tensor) -> Tokens:
    """See `tokens.apply_blocks`; blocks (..., V + 1, V + 1)."""
    vectors, scalars = tokens
    count = vectors.shape[-1]
    inner = blocks[..., :-1, :-1]
    found = (vectors.reshape(*inner.shape[:-2], -1, count) @ inner.mT).view(vectors.shape)
    added = scalars[..., None] * blocks[..., None, None, :-1, -1]
    found = torch.addcmul(found, added.unsqueeze(-2), there[..., None, :, None])
    sums = (vectors.sum(dim=-2) * blocks[..., None, None, -1, :-1]).sum(dim=-1)
    return Tokens(found, sums + blocks[..., -1, -1][..., None, None] * scalars)
