"""The tokens of a linear system by parts, so that no block matrix is formed.

B is the batch, N the size, S = N + 1 the tokens: the rows of the system, then the query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Tokens(NamedTuple):
    """vectors (B, S, V, N), for a system the parts aᵢ, h₁ᵢ, h₂ᵢ, h₃ᵢ; scalars (B, S), bᵢ."""

    vectors: Tensor
    scalars: Tensor

    def __add__(self, other: Tokens) -> Tokens:  # type: ignore[override]
        return Tokens(self.vectors + other.vectors, self.scalars + other.scalars)


def block_tokens(prompt: Any, ones: bool = True, parts: int = -2) -> Tokens:
    """(aᵢ, bᵢ, hᵢ) with hᵢ the rows of three identities, and the query (x₀, 1, 1), or (x₀, 1, 0).

    Padding is zero and stays so, since layers are linear in every token. `parts` is the dimension
    of the vector parts, −1 for the layout of training.
    """
    mask = component_mask(prompt)
    identity = torch.diag_embed(mask)
    rows = torch.stack([prompt.a, identity, identity, identity], dim=parts)
    h = mask if ones else torch.zeros_like(mask)
    query = torch.stack([prompt.x0, h, h, h], dim=parts)
    scalars = torch.cat([prompt.b, torch.ones_like(prompt.b[..., :1])], dim=-1)
    return Tokens(torch.cat([rows, query.unsqueeze(-3)], dim=-3), scalars)


def component_mask(prompt: Any) -> Tensor:
    """1 where a system has a component and 0 where it is padded, (..., N)."""
    components = torch.arange(prompt.a.shape[-1], device=prompt.a.device)
    exists: Tensor = components < prompt.size.unsqueeze(-1)
    return exists.to(prompt.a)


def apply_blocks(blocks: Tensor, tokens: Tokens, mask: Tensor) -> Tokens:
    """The matrix of blocks m (V + 1, V + 1) times every token: m·I, m·1, m·1ᵀ or m by its shapes.

    The last row and column are the scalar's; `mask` (B, N) is 1 for existing components. O(N) per
    token.
    """
    vectors = torch.einsum("st,bntc->bnsc", blocks[:-1, :-1], tokens.vectors)
    vectors = vectors + tokens.scalars[..., None, None] * blocks[:-1, -1, None]
    sums = tokens.vectors.sum(dim=3)
    scalars = sums @ blocks[-1, :-1] + blocks[-1, -1] * tokens.scalars
    return Tokens(vectors * mask[:, None, None], scalars)
