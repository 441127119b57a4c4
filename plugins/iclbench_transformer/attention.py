"""Multi-head attention, with softmax and without."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from iclbench import initialize
from iclbench.nn.fused import watched

from .merged import attend

#: Elements of the input from which on two products fewer save more than those of weights cost.
WORTH_MERGING = 20_000

#: Positions a width up to which scores are kept for the backward pass rather than computed again.
LONGEST = 4

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
        self.unmapped = False  # set by the engine: then no operator has to be vmapped
        self.heads, self.head_width, self.causal = heads, head_width, causal
        self.qkv = nn.Linear(width, 3 * heads * head_width)
        self.output = nn.Linear(heads * head_width, width)
        initialize(self, init_std)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, width) → (B, S, width)."""
        if self._merges(x):
            return self._merged(x)
        query, key, value = self._heads(self.qkv(x))
        return self._joined(self.mix(query, key, value))

    def at(self, x: Tensor, positions: slice) -> Tensor:
        """The output at some positions alone, which ask all others; (B, S, width) → (B, P, width).

        Equal to `forward` there but for rounding, since fewer queries are multiplied at once.
        """
        if self._merges(x):
            return self._merged(x, positions)
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

    def _merges(self, x: Tensor) -> bool:
        """Whether `_merged` is there for x, saves time and hides nothing from hooks."""
        return (
            self.unmapped
            and self.heads == 1
            and self.head_width >= x.shape[-1]
            and x.numel() >= WORTH_MERGING
            and x.shape[1] <= LONGEST * x.shape[2]
            and x.device.type == "cpu"
            and x.dtype in (torch.float32, torch.float64)
            and not torch.is_autocast_enabled("cpu")
            and type(self).mix is SoftmaxAttention.mix
            and type(self.qkv) is type(self.output) is nn.Linear
            and not watched(self)
        )

    def _merged(self, x: Tensor, positions: slice | None = None) -> Tensor:
        """softmax(xW_QKxᵀ/√d_head)xW_OV of one head, (B, S, width) → (B, P, width).

        W_QK = W_QW_Kᵀ and W_OV = W_VW_O are multiplied first: two products with x instead of four.
        The keys' bias is left out: to all scores of a query it adds the same, which softmax
        forgets. Its gradient is 0 then, and rounding elsewhere.
        """
        of_query, of_key, of_value = self.qkv.weight.chunk(3)
        query_bias, _, value_bias = self.qkv.bias.chunk(3)
        of_key = of_key / math.sqrt(self.head_width)
        asking = of_key.mT @ of_query, query_bias @ of_key
        answering = (
            self.output.weight @ of_value,
            torch.addmv(self.output.bias, self.output.weight, value_bias),
        )
        length = x.shape[1]
        mask = _square(length, x.dtype, x.device)[:length, :length] if self.causal else None
        if mask is not None and positions is not None:
            mask = mask[positions]
        return attend(x, asking, answering, mask, positions)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, n, d_head), mixed for the queries at `positions`, or the last t.

        In lower precision they are mixed in float32.
        """
        if query.dtype not in (torch.float32, torch.float64):
            with torch.autocast(query.device.type, enabled=False):
                mixed = self.mix(query.float(), key.float(), value.float(), positions)
            return mixed.to(query.dtype)
        if self.unmapped and query.device.type == "cpu":
            return self._fused(query, key, value, positions)
        # Written out: SDPA's fused kernels can't be vmapped over replicas on a CPU and may leave
        # full precision on a GPU, and its math path makes a mask and checks it in every layer.
        scale = 1 / math.sqrt(self.head_width)
        scores = query @ key.mT
        if self._masks(query, positions):
            scores = torch.add(hidden(query, key, positions), scores, alpha=scale)
        else:
            scores = scores * scale
        return scores.softmax(dim=-1) @ value

    def _fused(self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None) -> Tensor:
        """As `mix`, by torch's kernel for a CPU, whose own mask is for as many queries as keys."""
        causal, whole = self._masks(query, positions), query.shape[2] == key.shape[2]
        return scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=hidden(query, key, positions) if causal and not whole else None,
            is_causal=causal and whole,
            scale=1 / math.sqrt(self.head_width),
        )

    def _masks(self, query: Tensor, positions: slice | None) -> bool:
        """Whether anything is hidden; from a single query at the last position nothing is."""
        return self.causal and not (positions is None and query.shape[2] == 1)


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
