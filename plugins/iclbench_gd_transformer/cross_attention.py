"""Cross-attention to all embeddings, in chunks of queries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Attention weights per chunk; bounds memory for a large vocabulary.
WEIGHTS_PER_CHUNK = 2**24


def chunked_expectation(f: Tensor, embedding: Tensor) -> Tensor:
    """E(w_e)|f (…, d') from f (…, d') and W_e (C, d') (Wang et al., eq. 6).

    Equal to `kernels.expectation`, but holds only one chunk of the softmax over C at a time. The
    backward pass computes the chunks again.
    """
    rows: Any = _Expectation.apply(  # type: ignore[no-untyped-call]
        f.reshape(-1, f.shape[-1]), embedding
    )
    return rows.reshape(f.shape)  # type: ignore[no-any-return]


class _Expectation(torch.autograd.Function):
    # Replicas are trained under vmap, which derives a rule from the two methods below.
    generate_vmap_rule = True

    @staticmethod
    def forward(f: Tensor, embedding: Tensor) -> Tensor:
        """Map f (N, d') and W_e (C, d') to (N, d')."""
        parts = [(part @ embedding.mT).softmax(dim=1) @ embedding for part in _chunks(f, embedding)]
        return torch.cat(parts).to(f)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Save only the inputs; the softmax is computed again."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradients of f and of W_e."""
        f, embedding = ctx.saved_tensors
        d_f, d_embedding = [], torch.zeros_like(embedding)
        pairs = zip(_chunks(f, embedding), _chunks(grads[0], embedding), strict=True)
        for part, grad in pairs:
            weights = (part @ embedding.mT).softmax(dim=1)
            d_weights = grad @ embedding.mT
            d_scores = weights * (d_weights - (weights * d_weights).sum(dim=1, keepdim=True))
            d_f.append(d_scores @ embedding)
            # W_e is both keys, through the scores, and values, through the weights.
            d_embedding = d_embedding + (d_scores.mT @ part + weights.mT @ grad).to(embedding)
        return torch.cat(d_f).to(f), d_embedding


def _chunks(rows: Tensor, embedding: Tensor) -> tuple[Tensor, ...]:
    return torch.split(rows, max(1, WEIGHTS_PER_CHUNK // len(embedding)))
