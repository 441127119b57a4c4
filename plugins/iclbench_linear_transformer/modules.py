"""Layers Δeᵢ = Σ_{j≤N} (eⱼᵀQeᵢ) P eⱼ in both parametrizations, and models made of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iclbench import TrainingContext

from .fast import FastBlockModel
from .tokens import Tokens, apply_blocks, block_tokens, component_mask, state_size


class BlockLayer(nn.Module):
    """Heads whose P and Q consist of blocks p·I and p·1: (V + 1)² parameters each for any size N.

    Rows and columns of `P` and `Q` (heads, V + 1, V + 1) are the V vector parts (for a system a,
    h₁, h₂, h₃), then the scalar part b. A layer costs O(N³): (N + 1)·N scores of VN + 1 products,
    and as much again for the sums of P eⱼ.
    """

    def __init__(self, heads: int, init_std: float, vectors: int = 4) -> None:
        super().__init__()
        shape = (heads, vectors + 1, vectors + 1)
        self.P = nn.Parameter(init_std * torch.randn(shape))
        self.Q = nn.Parameter(init_std * torch.randn(shape))

    def blocks(self) -> tuple[Tensor, Tensor]:
        """P and Q, (heads, V + 1, V + 1) each."""
        return self.P, self.Q

    def forward(self, tokens: Tokens, mask: Tensor, queries: int = 1) -> Tokens:
        """Return e + Δe; the context is all tokens except the last `queries`.

        `mask` (B, N) is 1 for existing components.
        """
        # The sum is over j ≤ N: queries read the context and are read by no token.
        rows = Tokens(tokens.vectors[:, :-queries], tokens.scalars[:, :-queries])
        updated = tokens
        for P, Q in zip(*self.blocks(), strict=True):
            right = apply_blocks(Q, tokens, mask)
            # eⱼᵀQeᵢ, indexed (i, j), without softmax and without 1/N.
            scores = torch.einsum("bjsc,bisc->bij", rows.vectors, right.vectors)
            scores = scores + right.scalars.unsqueeze(2) * rows.scalars.unsqueeze(1)
            values = apply_blocks(P, rows, mask)
            updated = updated + Tokens(
                torch.einsum("bij,bjsc->bisc", scores, values.vectors),
                (scores @ values.scalars.unsqueeze(2))[..., 0],
            )
        return updated


class SquareBlockLayer(BlockLayer):
    """`BlockLayer` without the blocks p·1: V² + 1 parameters each.

    `P` and `Q` (heads, V, V) hold the blocks of the vector parts, `p` and `q` (heads,) those of the
    scalar part.
    """

    def __init__(self, heads: int, init_std: float, vectors: int = 4) -> None:
        nn.Module.__init__(self)
        self.P = nn.Parameter(init_std * torch.randn(heads, vectors, vectors))
        self.Q = nn.Parameter(init_std * torch.randn(heads, vectors, vectors))
        self.p = nn.Parameter(init_std * torch.randn(heads))
        self.q = nn.Parameter(init_std * torch.randn(heads))

    def blocks(self) -> tuple[Tensor, Tensor]:
        """See `BlockLayer.blocks`."""
        return _bordered(self.P, self.p), _bordered(self.Q, self.q)


def _bordered(square: Tensor, last: Tensor) -> Tensor:
    """The block-diagonal matrix (..., V + 1, V + 1) of (..., V, V) and (...)."""
    vectors = square.shape[-1]
    corner = nn.functional.pad(last[..., None, None], (vectors, 0, vectors, 0))
    return nn.functional.pad(square, (0, 1, 0, 1)) + corner


class FullLayer(nn.Module):
    """Heads with arbitrary `P` and `Q` (heads, d, d) on tokens (B, N + 1, d)."""

    def __init__(self, heads: int, width: int, init_std: float) -> None:
        super().__init__()
        self.P = nn.Parameter(init_std * torch.randn(heads, width, width))
        self.Q = nn.Parameter(init_std * torch.randn(heads, width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return e + Δe."""
        # The sum is over j ≤ N, without the query.
        rows = tokens[:, :-1]
        updated = tokens
        for P, Q in zip(self.P, self.Q, strict=True):
            # Tokens are rows here, so Qeᵢ is eᵢᵀQᵀ.
            scores = tokens @ Q.mT @ rows.mT
            updated = updated + scores @ (rows @ P.mT)
        return updated


class SystemModel(nn.Module):
    """A model whose answer (B, 1, N) is part a of the query after the last layer.

    `normalize` first divides A and b by ‖A‖_F/√N, which does not change x, so the answer does not
    depend on the scale of the system. `homogeneous` divides b and x₀ by ‖b‖ and multiplies the
    answer by it, so scaling b by t scales x by t, as in the true solution.
    """

    def __init__(self, layers: list[nn.Module], normalize: bool, homogeneous: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.normalize, self.homogeneous = normalize, homogeneous

    @property
    def iterates(self) -> int:
        """The number of layers."""
        return len(self.layers)

    def forward(self, prompt: Any) -> Tensor:
        """Return x (B, 1, N)."""
        return self.trajectory(prompt)[:, -1:]

    def trajectory(self, prompt: Any) -> Tensor:
        """x₀, then part a of the query after every layer, (B, layers + 1, N)."""
        prompt, factor = self.scaled(prompt)
        states = torch.stack(self.states(prompt), dim=1)
        return states if factor is None else states * factor.unsqueeze(1)

    def scaled(self, prompt: Any) -> tuple[Any, Tensor | None]:
        """The prompt as the layers see it, and the factor (..., 1) of the answer; None is 1."""
        if self.normalize:
            # The root mean square of A's eigenvalues; padding is 0 and does not count.
            size = prompt.a.norm(dim=(-2, -1)) / prompt.size.to(prompt.a).sqrt()
            a, b = prompt.a / size[..., None, None], prompt.b / size[..., None]
            prompt = prompt._replace(a=a, b=b)
        if not self.homogeneous:
            return prompt, None
        factor = prompt.b.norm(dim=-1, keepdim=True)
        # A system with b = 0 keeps its scale, rather than dividing by 0.
        factor = torch.where(factor > 0, factor, torch.ones_like(factor))
        return prompt._replace(b=prompt.b / factor, x0=prompt.x0 / factor), factor

    def states(self, prompt: Any) -> list[Tensor]:
        """Part a of the query before the first layer and after every layer, (B, N) each."""
        raise NotImplementedError


class BlockModel(SystemModel):
    """A model for systems of any size; `layers.i.{P, Q}` are public names.

    Without `ones`, the query is (x₀, 1, 0) and layers have no blocks p·1. Nothing then sums over
    components, so a rotation R of the system, (RARᵀ, Rb), rotates every state.
    """

    def __init__(
        self, layers: list[nn.Module], normalize: bool, homogeneous: bool, ones: bool
    ) -> None:
        super().__init__(layers, normalize, homogeneous)
        self.ones = ones

    def states(self, prompt: Any) -> list[Tensor]:
        """See `SystemModel.states`."""
        mask = component_mask(prompt)
        tokens = block_tokens(prompt, self.ones)
        states = [tokens.vectors[:, -1, 0]]
        for layer in self.layers:
            tokens = layer(tokens, mask)
            states.append(tokens.vectors[:, -1, 0])
        return states

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: N rows of four vectors and a scalar."""
        n = length - 1
        return (state_size(n, 4 * n + 1),) * self.iterates

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`."""
        return FastBlockModel(self)


class FullModel(SystemModel):
    """A model for one size N; `embedding` (N, K) is H, and the query's h is all ones."""

    def __init__(
        self,
        layers: list[nn.Module],
        normalize: bool,
        homogeneous: bool,
        embedding: nn.Parameter,
    ) -> None:
        super().__init__(layers, normalize, homogeneous)
        self.embedding = embedding

    def states(self, prompt: Any) -> list[Tensor]:
        """See `SystemModel.states`; raises ValueError for another size."""
        size, width = self.embedding.shape
        if prompt.a.shape[1] != size:
            raise ValueError(f"form=full is built for N = {size}, not {prompt.a.shape[1]}")
        count = len(prompt.a)
        rows = torch.cat(
            [prompt.a, prompt.b.unsqueeze(2), self.embedding.expand(count, size, width)], dim=2
        )
        # The query's b and h, 1 + K ones.
        ones = torch.ones_like(rows[:, :1, size:])
        tokens = torch.cat([rows, torch.cat([prompt.x0.unsqueeze(1), ones], dim=2)], dim=1)
        states = [tokens[:, -1, :size]]
        for layer in self.layers:
            tokens = layer(tokens)
            states.append(tokens[:, -1, :size])
        return states

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: N rows (aᵢ, bᵢ, hᵢ); the model is for one length."""
        size, width = self.embedding.shape
        return (state_size(size, size + 1 + width),) * self.iterates
