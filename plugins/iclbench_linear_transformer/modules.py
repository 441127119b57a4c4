"""Layers Δeᵢ = Σ_{j≤N} (eⱼᵀQeᵢ) P eⱼ, in both parametrizations, and the models made of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .tokens import Tokens, apply_blocks, block_tokens, component_mask


class BlockLayer(nn.Module):
    """Heads whose P and Q are blocks p·I and p·1: 50 parameters each, whatever N is.

    `P` and `Q` (heads, 5, 5) have the parts a, h₁, h₂, h₃, b in rows and columns. A layer costs
    O(N³): N + 1 times N scores of 4N + 1 products, and as much to add up P eⱼ.
    """

    def __init__(self, heads: int, init_std: float) -> None:
        super().__init__()
        self.P = nn.Parameter(init_std * torch.randn(heads, 5, 5))
        self.Q = nn.Parameter(init_std * torch.randn(heads, 5, 5))

    def blocks(self) -> tuple[Tensor, Tensor]:
        """P and Q, (heads, 5, 5) each."""
        return self.P, self.Q

    def forward(self, tokens: Tokens, there: Tensor) -> Tokens:
        """e + Δe; `there` (B, N) says which components exist."""
        rows = Tokens(tokens.vectors[:, :-1], tokens.scalars[:, :-1])
        changed = tokens
        for P, Q in zip(*self.blocks(), strict=True):
            right = apply_blocks(Q, tokens, there)
            scores = torch.einsum("bjsc,bisc->bij", rows.vectors, right.vectors)
            scores = scores + right.scalars.unsqueeze(2) * rows.scalars.unsqueeze(1)
            values = apply_blocks(P, rows, there)
            changed = changed + Tokens(
                torch.einsum("bij,bjsc->bisc", scores, values.vectors),
                (scores @ values.scalars.unsqueeze(2))[..., 0],
            )
        return changed


class SquareBlockLayer(BlockLayer):
    """The same without the blocks p·1: 34 parameters a head.

    `P` and `Q` (heads, 4, 4) have the parts a, h₁, h₂, h₃; `p` and `q` (heads,) are b's blocks.
    """

    def __init__(self, heads: int, init_std: float) -> None:
        nn.Module.__init__(self)
        self.P = nn.Parameter(init_std * torch.randn(heads, 4, 4))
        self.Q = nn.Parameter(init_std * torch.randn(heads, 4, 4))
        self.p = nn.Parameter(init_std * torch.randn(heads))
        self.q = nn.Parameter(init_std * torch.randn(heads))

    def blocks(self) -> tuple[Tensor, Tensor]:
        """See `BlockLayer.blocks`."""
        return _bordered(self.P, self.p), _bordered(self.Q, self.q)


def _bordered(square: Tensor, last: Tensor) -> Tensor:
    """(heads, 4, 4) and (heads,) on the diagonal of (heads, 5, 5)."""
    right = nn.functional.pad(square, (0, 1, 0, 1))
    return right + nn.functional.pad(last[:, None, None], (4, 0, 4, 0))


class FullLayer(nn.Module):
    """Heads with any `P` and `Q` (heads, d, d) on tokens (B, N + 1, d)."""

    def __init__(self, heads: int, width: int, init_std: float) -> None:
        super().__init__()
        self.P = nn.Parameter(init_std * torch.randn(heads, width, width))
        self.Q = nn.Parameter(init_std * torch.randn(heads, width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """e + Δe."""
        rows = tokens[:, :-1]
        changed = tokens
        for P, Q in zip(self.P, self.Q, strict=True):
            scores = tokens @ Q.mT @ rows.mT
            changed = changed + scores @ (rows @ P.mT)
        return changed


class SystemModel(nn.Module):
    """The answer (B, 1, N) is the query's part a after the last layer.

    With `normalize`, A and b are divided by ‖A‖_F/√N first, which leaves x as it is: the model
    gives the same answer whatever the scale of the system.
    """

    def __init__(self, layers: list[nn.Module], normalize: bool) -> None:
        super().__init__()
        self.layers, self.normalize = nn.ModuleList(layers), normalize

    @property
    def iterates(self) -> int:
        """The number of layers."""
        return len(self.layers)

    def forward(self, prompt: Any) -> Tensor:
        """x (B, 1, N)."""
        return self.trajectory(prompt)[:, -1:]

    def trajectory(self, prompt: Any) -> Tensor:
        """x₀ and the query's part a after every layer, (B, layers + 1, N)."""
        if self.normalize:
            size = prompt.a.norm(dim=(1, 2)) / prompt.size.to(prompt.a).sqrt()
            prompt = prompt._replace(a=prompt.a / size[:, None, None], b=prompt.b / size[:, None])
        return torch.stack(self.states(prompt), dim=1)

    def states(self, prompt: Any) -> list[Tensor]:
        """The query's part a before and after every layer, each (B, N)."""
        raise NotImplementedError


class BlockModel(SystemModel):
    """Runs on systems of every size; `layers.i.{P, Q}` are public names.

    Without `ones` the query is (x₀, 1, 0), and no layer has blocks p·1: nothing adds up
    components, and a rotation R of the system, (RARᵀ, Rb), rotates every state.
    """

    def __init__(self, layers: list[nn.Module], normalize: bool, ones: bool) -> None:
        super().__init__(layers, normalize)
        self.ones = ones

    def states(self, prompt: Any) -> list[Tensor]:
        """See `SystemModel.states`."""
        there = component_mask(prompt)
        tokens = block_tokens(prompt, self.ones)
        found = [tokens.vectors[:, -1, 0]]
        for layer in self.layers:
            tokens = layer(tokens, there)
            found.append(tokens.vectors[:, -1, 0])
        return found


class FullModel(SystemModel):
    """Runs at one size; `embedding` (N, K) is H, and the query's h is all ones."""

    def __init__(
        self, layers: list[nn.Module], normalize: bool, size: int, embedding: int, init_std: float
    ) -> None:
        super().__init__(layers, normalize)
        self.embedding = nn.Parameter(init_std * torch.randn(size, embedding))

    def states(self, prompt: Any) -> list[Tensor]:
        """See `SystemModel.states`; raises ValueError for another size."""
        size, width = self.embedding.shape
        if prompt.a.shape[1] != size:
            raise ValueError(f"form=full is built for N = {size}, not {prompt.a.shape[1]}")
        count = len(prompt.a)
        rows = torch.cat(
            [prompt.a, prompt.b.unsqueeze(2), self.embedding.expand(count, size, width)], dim=2
        )
        ones = torch.ones_like(rows[:, :1, size:])
        tokens = torch.cat([rows, torch.cat([prompt.x0.unsqueeze(1), ones], dim=2)], dim=1)
        found = [tokens[:, -1, :size]]
        for layer in self.layers:
            tokens = layer(tokens)
            found.append(tokens[:, -1, :size])
        return found
