"""The GD transformer on text: covariates are learned positions (Wang et al., 3.6, 6.3, H)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from iclbench import Signature, TrainingContext, read_positions

from .config import GDTransformerConfig
from .cross_attention import chunked_expectation
from .fast import FactoredText
from .kernels import Kernel
from .text_kernels import initial_scale, position_attention, sinusoids


class TextForm(nn.Module):
    """f_j ← f_j + Σ_m P_m Σᵢ κ(Λ_m pᵢ, Λ_m p_j)(w_yᵢ − E(w_e)|fᵢ) from f = 0, one head per kernel.

    Position j = 1…T + 1 has the covariate p_j, and id i ≤ T the embedding w_yᵢ. Output t predicts
    id t + 1 from f at the query p_{t+1}, whose keys are ids 1…t. All kernels except softmax divide
    by the number of keys. P contains the step sizes.

    The parameters are:

    - `embedding`: W_e (C, d'), the table of values and of the answer
    - `positions`: p (T + 1, d')
    - `diagonal`, `project`: diagonals of Λ (M, d') and P (blocks, M, d')
    - `feed_forward`, `norm1`: if requested, f + mlp(norm1(f)) at the query
    - `norm`: before the logits W_e norm(f)
    """

    def __init__(self, signature: Signature, config: GDTransformerConfig) -> None:
        """Build for the signature's vocabulary, length T and read-outs."""
        super().__init__()
        width, heads, length = config.embedding, config.heads, signature.length
        self.kernel: Kernel = config.kernel
        self.blocks, self.length = config.blocks, length
        self.readout = read_positions(signature)
        self._read = frozenset(signature.readout)
        scale = initial_scale(config.kernel, width) if config.scale is None else config.scale
        self.embedding = nn.Parameter(0.02 * torch.randn(signature.vocabulary, width))
        sinusoidal = config.covariates == "sinusoidal"
        self.positions = nn.Parameter(
            sinusoids(length + 1, width) if sinusoidal else torch.randn(length + 1, width)
        )
        self.diagonal = nn.Parameter(scale * (1.0 + 0.1 * torch.randn(heads, width)))
        self.project = nn.Parameter(torch.ones(config.blocks, heads, width) / heads)
        self.norm = nn.LayerNorm(width)
        self.norm1 = nn.LayerNorm(width) if config.feed_forward else None
        self.feed_forward = (
            nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
            if config.feed_forward
            else None
        )

    def forward(self, prompt: Any) -> Tensor:
        """Return the logits (B, P, C) at the read-outs."""
        return self.answer(self.functions(prompt.ids)[:, self.readout]) @ self.embedding.mT

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`."""
        fits = context.factored_logits and context.replicas != "leading"
        return FactoredText(self, context) if fits else None

    def hidden(self, real: Tensor, ids: Tensor) -> Tensor:
        """f of every output, (B, T, d'), from ids (B, T); text has no real features."""
        return self.functions(ids)

    def functions(self, ids: Tensor) -> Tensor:
        """f (B, t, d') at the queries p_2 … p_{t+1} after the last block, from ids (B, t)."""
        raise NotImplementedError

    def answer(self, f: Tensor) -> Tensor:
        """The state that W_e maps to logits, from f (…, d')."""
        if self.feed_forward is not None and self.norm1 is not None:
            f = f + self.feed_forward(self.norm1(f))
        normed: Tensor = self.norm(f)
        return normed

    def attention_to(self, first: int, last: int, seen: Tensor, counts: Tensor) -> Tensor:
        """Weights (M, S, N) of keys p_1 … p_N for queries p_first … p_last.

        `seen` (S, N) and `counts` (S,) are those of `position_attention`.
        """
        scaled = self.positions * self.diagonal.unsqueeze(1)
        keys, queries = scaled[:, : seen.shape[1]], scaled[:, first - 1 : last]
        return position_attention(self.kernel, queries, keys, seen, counts)

    def step(self, block: int, weights: Tensor, values: Tensor) -> Tensor:
        """Σ_m P_m times the sum of values (B, N, d') with weights (M, S, N); (B, S, d')."""
        total = torch.zeros_like(values[:, :1])
        for project, head_weights in zip(self.project[block], weights, strict=True):
            total = total + project * (head_weights @ values)
        return total


class CausalText(TextForm):
    """All prefixes in one pass: f_j has the keys i < j in every block.

    This is exact with one block. With more it is a variant, since gradient descent on a prefix
    would also move fᵢ by the examples after i.
    """

    def functions(self, ids: Tensor) -> Tensor:
        """See `TextForm.functions`."""
        count = ids.shape[1]
        w = look_up(ids, self.embedding)
        # Query p_1 sees no key, and its output is not used.
        seen = torch.ones(count + 1, count, dtype=torch.bool, device=ids.device).tril(-1)
        weights = self.attention_to(1, count + 1, seen, seen.sum(dim=1))
        # E(w_e) under f = 0 is the mean embedding: the softmax is uniform.
        values = w - self.embedding.mean(dim=0)
        f = self.step(0, weights, values)
        for block in range(1, self.blocks):
            values = w - chunked_expectation(f[:, :-1], self.embedding)
            f = f + self.step(block, weights, values)
        return f[:, 1:]

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: the values of every block, as the decoder keeps them."""
        return (length * self.embedding.shape[1],) * self.blocks

    def decoder(self) -> TextDecoder:
        """Return a decoder that caches the values of every block."""
        return TextDecoder(self)


class ExactText(TextForm):
    """Gradient descent on every prefix separately: f_j for j = 1 … t + 1 has the keys 1 … t.

    Every read-out costs a pass over its prefix, so this suits tasks with few read-outs.
    """

    def functions(self, ids: Tensor) -> Tensor:
        """See `TextForm.functions`; outputs that are not read-outs are 0."""
        w = look_up(ids, self.embedding)
        zeros = torch.zeros_like(w[:, 0])
        rows = [self.of_prefix(w[:, : t + 1]) if t in self._read else zeros
                for t in range(ids.shape[1])]  # fmt: skip
        return torch.stack(rows, dim=1)

    def decoder(self) -> PrefixDecoder:
        """Return a decoder that descends on every prefix from the start."""
        return PrefixDecoder(self)

    def of_prefix(self, w: Tensor) -> Tensor:
        """f (B, d') at the query p_{t+1} from the embeddings of ids 1 … t, (B, t, d')."""
        count = w.shape[1]
        # Every position, earlier ones too, sees the whole prefix.
        seen = torch.ones(count + 1, count, dtype=torch.bool, device=w.device)
        weights = self.attention_to(1, count + 1, seen, seen.sum(dim=1))
        f = self.step(0, weights, w - self.embedding.mean(dim=0))
        for block in range(1, self.blocks):
            values = w - chunked_expectation(f[:, :-1], self.embedding)
            f = f + self.step(block, weights, values)
        return f[:, -1]


class PrefixDecoder:
    """A decoder without a cache: every prefix has its own descent."""

    def __init__(self, model: ExactText) -> None:
        """Start with no ids."""
        self.model = model
        self.ids: Tensor | None = None

    def advance(self, ids: Tensor) -> Tensor:
        """See `iclbench.Decoder`."""
        self.ids = ids if self.ids is None else torch.cat([self.ids, ids], dim=1)
        f = self.model.of_prefix(look_up(self.ids, self.model.embedding))
        return self.model.answer(f) @ self.model.embedding.mT


class TextDecoder:
    """A decoder that caches the values of every block at the ids so far."""

    def __init__(self, model: CausalText) -> None:
        """Compute the weights, which depend only on positions, once for all steps."""
        self.model, self.count = model, 0
        length = model.length
        seen = torch.ones(length + 1, length, dtype=torch.bool, device=model.positions.device)
        seen = seen.tril(-1)
        self.weights = model.attention_to(1, length + 1, seen, seen.sum(dim=1))
        self.values: list[Tensor] = []  # one (B, n, d') per block

    def advance(self, ids: Tensor) -> Tensor:
        """See `iclbench.Decoder`."""
        model = self.model
        w = look_up(ids, model.embedding)
        first, last = self.count, self.count + ids.shape[1]
        if not self.values:
            self.values = [w[:, :0] for _ in range(model.blocks)]
        self.count = last
        # Queries p_{first+1} … p_{last+1}: the new ids' positions, whose f the next block needs,
        # and the query that is answered.
        total: Tensor = torch.zeros_like(w[:, :1])
        for block in range(model.blocks):
            if block == 0:
                expected = model.embedding.mean(dim=0).expand_as(w)
            else:
                expected = chunked_expectation(total[:, :-1], model.embedding)
            new = torch.cat([self.values[block], w - expected], dim=1)
            self.values[block] = new
            rows = self.weights[:, first : last + 1, :last]
            total = total + model.step(block, rows, new)
        return model.answer(total[:, -1]) @ model.embedding.mT
