"""The tokens of a linear system by parts, so that no block matrix is ever formed.

B is the batch, N the size, S = N + 1 the tokens: the rows of the system, then the query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Tokens(NamedTuple):
    """vectors (B, S, 4, N), the parts aᵢ, h₁ᵢ, h₂ᵢ, h₃ᵢ; scalars (B, S), the part bᵢ."""

    vectors: Tensor
    scalars: Tensor

    def __add__(self, other: Tokens) -> Tokens:  # type: ignore[override]
        return Tokens(self.vectors + other.vectors, self.scalars + other.scalars)


def block_tokens(prompt: Any, ones: bool = True) -> Tokens:
    """(aᵢ, bᵢ, hᵢ) with hᵢ the rows of three identities, and the query (x₀, 1, 1), or (x₀, 1, 0).

    Where a system is padded, all is zero, and stays so: layers are linear in every token.
    """
    there = component_mask(prompt)
    identity = torch.diag_embed(there)
    rows = torch.stack([prompt.a, identity, identity, identity], dim=2)
    h = there[:, None] if ones else torch.zeros_like(there[:, None])
    query = torch.stack([prompt.x0.unsqueeze(1), h, h, h], dim=2)
    scalars = torch.cat([prompt.b, torch.ones_like(prompt.b[:, :1])], dim=1)
    return Tokens(torch.cat([rows, query], dim=1), scalars)


def component_mask(prompt: Any) -> Tensor:
    """1 where a system has a component and 0 where it is padded, (B, N)."""
    components = torch.arange(prompt.a.shape[1], device=prompt.a.device)
    there: Tensor = components < prompt.size.unsqueeze(1)
    return there.to(prompt.a)


def apply_blocks(blocks: Tensor, tokens: Tokens, there: Tensor) -> Tokens:
    """The matrix of blocks m (5, 5) times every token: m·I, m·1, m·1ᵀ or m by the parts' shapes.

    The fifth row and column are b's; `there` (B, N) are the components that exist. O(N) a token.
    """
    vectors = torch.einsum("st,bntc->bnsc", blocks[:4, :4], tokens.vectors)
    vectors = vectors + tokens.scalars[..., None, None] * blocks[:4, 4, None]
    sums = tokens.vectors.sum(dim=3)
    scalars = sums @ blocks[4, :4] + blocks[4, 4] * tokens.scalars
    return Tokens(vectors * there[:, None, None], scalars)
