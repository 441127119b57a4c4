"""The tokens of a linear system, held by parts so that no block matrix is formed.

B is the number of prompts and N the size of a system. There are S = N + 1 tokens: the rows of the
system, then the query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Tokens(NamedTuple):
    """Vectors (B, S, V, N), for a system the parts aᵢ, h₁ᵢ, h₂ᵢ, h₃ᵢ, and scalars (B, S), bᵢ."""

    vectors: Tensor
    scalars: Tensor

    def __add__(self, other: Tokens) -> Tokens:  # type: ignore[override]
        return Tokens(self.vectors + other.vectors, self.scalars + other.scalars)


def block_tokens(prompt: Any, ones: bool = True, parts: int = -2) -> Tokens:
    """Tokens (aᵢ, bᵢ, hᵢ), where hᵢ are rows of three identities, and the query.

    The query is (x₀, 1, 1), or (x₀, 1, 0) without `ones`. `parts` is the dimension of the vector
    parts, −1 for the layout of training. Padding is zero, and layers keep it zero.
    """
    mask = component_mask(prompt)
    # Padded rows have no 1 in the identities, so they are zero tokens.
    identity = torch.diag_embed(mask)
    rows = torch.stack([prompt.a, identity, identity, identity], dim=parts)
    h = mask if ones else torch.zeros_like(mask)
    query = torch.stack([prompt.x0, h, h, h], dim=parts)
    scalars = torch.cat([prompt.b, torch.ones_like(prompt.b[..., :1])], dim=-1)
    return Tokens(torch.cat([rows, query.unsqueeze(-3)], dim=-3), scalars)


def component_mask(prompt: Any) -> Tensor:
    """1 for a system's components and 0 for padding, (..., N), in the dtype of A."""
    components = torch.arange(prompt.a.shape[-1], device=prompt.a.device)
    exists: Tensor = components < prompt.size.unsqueeze(-1)
    return exists.to(prompt.a)


def state_size(context: int, width: int) -> int:
    """How many numbers a layer keeps of a context of tokens of this width.

    Its outputs depend on Σ eⱼeⱼᵀ alone; the tokens themselves are kept where they are fewer.
    """
    return min(context, width) * width


def apply_blocks(blocks: Tensor, tokens: Tokens, mask: Tensor) -> Tokens:
    """Multiply every token by a matrix of blocks in O(N).

    Entry m of `blocks` (V + 1, V + 1) stands for m·I between vector parts, m·1 or m·1ᵀ between a
    vector part and the scalar part, which is last, and m alone for the scalar part. `mask` (B, N)
    is 1 for existing components.
    """
    vectors = torch.einsum("st,bntc->bnsc", blocks[:-1, :-1], tokens.vectors)
    vectors = vectors + tokens.scalars[..., None, None] * blocks[:-1, -1, None]
    sums = tokens.vectors.sum(dim=3)
    scalars = sums @ blocks[-1, :-1] + blocks[-1, -1] * tokens.scalars
    # The blocks m·1 would otherwise write into padding.
    return Tokens(vectors * mask[:, None, None], scalars)
