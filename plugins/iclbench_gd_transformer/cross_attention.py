"""Cross-attention to all embeddings, some queries at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Weights that are held at once, in elements.
AT_ONCE = 2**24


def chunked_expectation(f: Tensor, embedding: Tensor) -> Tensor:
    """E(w_e)|f (…, d') of f (…, d') and W_e (C, d') (categorical, eq. 6).

    As `kernels.expectation`, but never more than some rows of the softmax over C are held: they are
    computed again for the gradient.
    """
    rows: Any = _Expectation.apply(  # type: ignore[no-untyped-call]
        f.reshape(-1, f.shape[-1]), embedding
    )
    return rows.reshape(f.shape)  # type: ignore[no-any-return]


class _Expectation(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(f: Tensor, embedding: Tensor) -> Tensor:
        """f (N, d'), embedding (C, d') → (N, d')."""
        parts = [(part @ embedding.mT).softmax(dim=1) @ embedding for part in _chunks(f, embedding)]
        return torch.cat(parts).to(f)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the inputs alone."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients of f and of the embeddings."""
        f, embedding = ctx.saved_tensors
        d_f, d_embedding = [], torch.zeros_like(embedding)
        pairs = zip(_chunks(f, embedding), _chunks(grads[0], embedding), strict=True)
        for part, grad in pairs:
            share = (part @ embedding.mT).softmax(dim=1)
            pull = grad @ embedding.mT
            slope = share * (pull - (share * pull).sum(dim=1, keepdim=True))
            d_f.append(slope @ embedding)
            d_embedding = d_embedding + (slope.mT @ part + share.mT @ grad).to(embedding)
        return torch.cat(d_f).to(f), d_embedding


def _chunks(rows: Tensor, embedding: Tensor) -> tuple[Tensor, ...]:
    return torch.split(rows, max(1, AT_ONCE // len(embedding)))
