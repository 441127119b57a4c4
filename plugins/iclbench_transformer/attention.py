"""Multi-head attention, with softmax and without."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import linear, scaled_dot_product_attention

from iclbench import initialize

#: Causal masks by size, dtype and device.
MASKS: dict[tuple[int, torch.dtype, torch.device], Tensor] = {}


class SoftmaxAttention(nn.Module):
    """softmax(QKᵀ/√d_head)V for each head (least_squares, eq. 1, with GPT-2's scale and biases).

    Parameters: `qkv` projects (B, S, width) to queries, keys and values of `head_width` for each
    head; `output` projects back.
    """

    #: Whether `extend` can go on from the keys and values of earlier positions.
    extends = True

    def __init__(
        self, width: int, heads: int, head_width: int, causal: bool, init_std: float
    ) -> None:
        super().__init__()
        self.trains_alone = False  # set by the engine: then no operator has to be vmapped
        self.heads, self.head_width, self.causal = heads, head_width, causal
        self.qkv = nn.Linear(width, 3 * heads * head_width)
        self.output = nn.Linear(heads * head_width, width)
        initialize(self, init_std)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, width) → (B, S, width)."""
        query, key, value = self._heads(self.qkv(x))
        return self._joined(self.mix(query, key, value))

    def at(self, x: Tensor, positions: slice) -> Tensor:
        """The output at some positions alone, which ask all others; (B, S, width) → (B, P, width).

        Equal to `forward` there but for rounding, since fewer queries are multiplied at once.
        """
        length = x.shape[1]
        if 2 * len(range(*positions.indices(length))) >= length:  # to cut the weights costs more
            query, key, value = self._heads(self.qkv(x))
            return self._joined(self.mix(query[:, :, positions], key, value, positions))
        size = self.heads * self.head_width
        weights, biases = (
            torch.split(t, [size, 2 * size]) for t in (self.qkv.weight, self.qkv.bias)
        )
        (query,) = self._heads(linear(x[:, positions].contiguous(), weights[0], biases[0]))
        key, value = self._heads(linear(x, weights[1], biases[1]))
        return self._joined(self.mix(query, key, value, positions))

    def extend(self, x: Tensor, kept: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, t, width) → (B, t, width) at positions after those whose keys and values are kept."""
        query, key, value = self._heads(self.qkv(x))
        new = torch.stack([key, value])
        kept = new if kept is None else torch.cat([kept, new], dim=3)
        return self._joined(self.mix(query, kept[0], kept[1])), kept

    def _heads(self, x: Tensor) -> list[Tensor]:
        """(B, S, kinds · heads · d_head) → one (B, heads, S, d_head) a kind."""
        kinds = torch.split(x, self.heads * self.head_width, dim=-1)
        return [k.view(*k.shape[:2], self.heads, self.head_width).transpose(1, 2) for k in kinds]

    def _joined(self, mixed: Tensor) -> Tensor:
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, n, d_head), mixed for the queries at `positions`, or the last t."""
        causal = self.causal and not (positions is None and query.shape[2] == 1)  # else all is seen
        if query.dtype not in (torch.float32, torch.float64):
            # SDPA's math path takes the softmax in float32.
            mask = hidden(query, key, positions) if causal else None
            with sdpa_kernel(SDPBackend.MATH):
                return scaled_dot_product_attention(query, key, value, attn_mask=mask)
        if self.trains_alone and query.device.type == "cpu":
            whole = query.shape[2] == key.shape[2]
            mask = hidden(query, key, positions) if causal and not whole else None
            return scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=causal and mask is None
            )
        # Written out: SDPA's fused kernels can't be vmapped over replicas on a CPU and may leave
        # full precision on a GPU, and its math path makes a mask and checks it in every layer.
        scale = 1 / math.sqrt(query.shape[-1])
        scores = query @ key.mT
        if causal:
            scores = torch.add(hidden(query, key, positions), scores, alpha=scale)
        else:
            scores = scores * scale
        return scores.softmax(dim=-1) @ value


def hidden(query: Tensor, key: Tensor, positions: slice | None) -> Tensor:
    """0 where a query at `positions`, or at the last t, may see a key and −∞ elsewhere, (t, n)."""
    asking, length = query.shape[2], key.shape[2]
    mask = _square(length, query.dtype, query.device)
    rows = slice(length - asking, length) if positions is None else positions
    return mask[:length, :length][rows]


def _square(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The causal mask of `length` positions or more; one a power of two, made once and kept."""
    size = 1 << (length - 1).bit_length()
    made = MASKS.get((size, dtype, device))
    if made is None:
        made = torch.full((size, size), -math.inf, dtype=dtype, device=device).triu(1)
        if _lasts(made):
            MASKS[size, dtype, device] = made
    return made


def _lasts(made: Tensor) -> bool:
    """Whether a tensor outlives the transform, the mode or the capture that it was made in."""
    try:
        made.untyped_storage()
    except NotImplementedError:  # wrapped by torch.func
        return False
    return type(made) is Tensor and not (made.is_cuda and torch.cuda.is_current_stream_capturing())


def seen(query: Tensor, key: Tensor, positions: slice | None) -> Tensor:
    """Which of n keys each of t queries may see, (t, n): at `positions`, or the last t."""
    return hidden(query, key, positions) == 0


class LinearAttention(SoftmaxAttention):
    """(QKᵀ/√d_head)V for each head, divided by S if asked (least_squares, eq. 21, with biases)."""

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        causal: bool,
        init_std: float,
        *,
        mean: bool = False,
    ) -> None:
        super().__init__(width, heads, head_width, causal, init_std)
        self.mean = mean
        self.extends = not mean  # S is not known before the end

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, S, d_head), mixed for the queries at `positions`, or at all."""
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.mean:
            scores = scores / key.shape[-2]
        if self.causal and positions is None:
            scores = scores.tril(scores.shape[-1] - scores.shape[-2])
        elif self.causal:
            scores = scores * seen(query, key, positions)
        return scores @ value
